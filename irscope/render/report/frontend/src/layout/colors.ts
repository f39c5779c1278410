// The colours of irscope/render/canvas.py: a test compares the two.

export type Rgb = [number, number, number];

const EIGHT: Rgb[] = [
  [86, 180, 233],
  [230, 159, 0],
  [0, 158, 115],
  [240, 228, 66],
  [0, 114, 178],
  [213, 94, 0],
  [204, 121, 167],
  [150, 150, 150],
];
const SCALE: Rgb[] = [
  [0, 32, 76],
  [53, 66, 108],
  [102, 105, 112],
  [148, 142, 119],
  [199, 180, 100],
  [255, 234, 70],
];

/** The fill colour of one of `count` values. */
export function fillOf(value: number, count: number, dark: boolean): Rgb {
  if (count > 16) {
    const at = (value / (count - 1)) * (SCALE.length - 1);
    const low = Math.min(Math.floor(at), SCALE.length - 2);
    return mixed(SCALE[low + 1]!, SCALE[low]!, at - low);
  }
  const near = value % 16 < 8;
  const share = dark ? (near ? 0.72 : 0.42) : near ? 0.62 : 0.95;
  return mixed(EIGHT[value % 8]!, dark ? [16, 18, 22] : [255, 255, 255], share);
}

function mixed(color: Rgb, ground: Rgb, share: number): Rgb {
  const part = (at: 0 | 1 | 2) => Math.round(color[at] * share + ground[at] * (1 - share));
  return [part(0), part(1), part(2)];
}

/** Black or white, whichever has more contrast on a colour. */
export function inkOn(color: Rgb): string {
  const [red, green, blue] = color.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue! > 0.179 ? "#000000" : "#ffffff";
}

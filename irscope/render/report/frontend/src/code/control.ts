// What the control information of a SASS instruction says, in words.

const CONTROL = /\bB(?<wait>[\d-]{6}):R(?<read>[\d-]):W(?<write>[\d-]):(?<yields>[Y-]):S(?<stall>\d\d)/;
const LIVE = /\bG(?<general>\d+):P(?<predicates>\d+):U(?<uniform>\d+):Q(?<more>\d+)/;

/** One sentence; empty where the line has no control information. */
export function controlText(line: string): string {
  const found = CONTROL.exec(line)?.groups;
  if (!found) return "";
  const waits = [...found["wait"]!].filter((digit) => digit !== "-");
  const parts = [
    waits.length ? `waits for scoreboard ${waits.join(", ")}` : "",
    found["write"] === "-" ? "" : `sets scoreboard ${found["write"]} until its result is written`,
    found["read"] === "-" ? "" : `sets scoreboard ${found["read"]} until its operands are read`,
    found["yields"] === "Y" ? "may yield to another warp" : "",
    `stalls ${Number(found["stall"])} cycles`,
  ];
  const live = LIVE.exec(line)?.groups;
  const registers = live
    ? `; live: ${Number(live["general"])} registers, ${Number(live["predicates"])} predicates, ${Number(live["uniform"])} uniform`
    : "";
  return parts.filter(Boolean).join(", ") + registers;
}

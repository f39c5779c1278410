// A linear layout as a map: which register of which thread holds each element, or which offset of memory.
import type { LayoutRow } from "../data/model";

export interface Owner {
  register: number;
  lane: number;
  warp: number;
  block: number;
  offset: number;
}

export interface LayoutMap {
  shape: number[];
  rows: number;
  columns: number;
  inputs: string[];
  sizes: Record<string, number>;
  /** The owners of each cell, row by row. */
  cells: Owner[][];
  note: string;
}

const LARGEST = 1 << 17;
const WRAP = 64;

/** The map of a layout's first plane; undefined where the compiler gave no answer, or it is too large to draw. */
export function mapOf(row: LayoutRow): LayoutMap | undefined {
  const dims = row["out_dims"] as [string, number][] | undefined;
  if (!row.bases || !dims) return undefined;
  const bases: [string, number[][]][] = Array.isArray(row.bases) ? row.bases : Object.entries(row.bases);
  const shape = dims.map(([, size]) => size);
  const combinations = bases.reduce((product, [, vectors]) => product * 2 ** vectors.length, 1);
  if (combinations > LARGEST) return undefined;
  const [height, width] = shape.length === 1 ? [1, shape[0]!] : [shape.at(-2)!, shape.at(-1)!];
  const isLine = height === 1 && width > WRAP;
  const [rows, columns] = isLine ? [Math.ceil(width / WRAP), WRAP] : [height, width];
  const cells = Array.from({ length: rows * columns }, (): Owner[] => []);
  const indices = new Array<number>(bases.length).fill(0);
  const walk = (at: number, coordinates: number[]): void => {
    if (at === bases.length) {
      const plane = coordinates.slice(0, -2).every((value) => value === 0);
      const y = shape.length === 1 ? 0 : coordinates.at(-2)!;
      const x = coordinates.at(-1)!;
      const cell = isLine ? x : y * columns + x;
      if (plane || shape.length < 3) cells[cell]?.push(ownerOf(bases, indices));
      return;
    }
    const vectors = bases[at]![1];
    for (let index = 0; index < 2 ** vectors.length; index++) {
      indices[at] = index;
      const moved = coordinates.map((value, dim) =>
        vectors.reduce((sum, vector, bit) => ((index >> bit) & 1 ? sum ^ (vector[dim] ?? 0) : sum), value),
      );
      walk(at + 1, moved);
    }
  };
  walk(
    0,
    shape.map(() => 0),
  );
  const sizes = Object.fromEntries(bases.map(([name, vectors]) => [name, 2 ** vectors.length]));
  const note =
    shape.length > 2
      ? `The first plane of ${shape.join("×")}.`
      : isLine
        ? `One dimension, ${WRAP} elements a row.`
        : "";
  return { shape, rows, columns, inputs: bases.map(([name]) => name), sizes, cells, note };
}

function ownerOf(bases: [string, number[][]][], indices: number[]): Owner {
  const owner: Owner = { register: 0, lane: 0, warp: 0, block: 0, offset: -1 };
  bases.forEach(([name], at) => {
    if (name === "register" || name === "lane" || name === "warp" || name === "block" || name === "offset")
      owner[name] = indices[at]!;
  });
  return owner;
}

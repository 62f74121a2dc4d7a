import type { HttpRequest } from '../../../src/entry-adapter.js'
import type { Dice } from './dice.js'

/** Bytes at which parsers decide something. */
const special = Buffer.from('\0\t\n\r "%\'()*+,-./:;=?@[\\]{}~\x7f\x80\xc0\xe9\xff0aZ')
const noise = ['%00', '%2e%2e/', '\r\n', '\u00e9', '\ud800', '"', ';a', ', a=1', ' ', '/', '0', '']

type Mutation = (bytes: Buffer, dice: Dice, other: Buffer) => Buffer

/** Returns the start and the end of a range of at most `most` bytes. */
function range({ length }: Buffer, dice: Dice, most = 40): [number, number] {
  const start = dice.below(length + 1)
  return [start, Math.min(length, start + 1 + dice.below(most))]
}

const mutations: readonly Mutation[] = [
  function flipBit(bytes, dice) {
    const copy = Buffer.from(bytes)
    const at = dice.below(copy.length || 1)
    if (at < copy.length) copy[at] = (copy[at] ?? 0) ^ (1 << dice.below(8))
    return copy
  },
  function replaceByte(bytes, dice) {
    const copy = Buffer.from(bytes)
    const at = dice.below(copy.length || 1)
    if (at < copy.length) copy[at] = dice.pick([...special])
    return copy
  },
  function remove(bytes, dice) {
    const [start, end] = range(bytes, dice)
    return Buffer.concat([bytes.subarray(0, start), bytes.subarray(end)])
  },
  function repeat(bytes, dice) {
    const [start, end] = range(bytes, dice)
    const times = dice.weighted([
      [8, 1],
      [2, 5],
      [1, 200],
    ])
    const piece = bytes.subarray(start, end)
    const pieces = Array.from({ length: times }, () => piece)
    return Buffer.concat([bytes.subarray(0, end), ...pieces, bytes.subarray(end)])
  },
  function swap(bytes, dice) {
    const points = [0, 0, 0, 0].map(() => dice.below(bytes.length + 1)).sort((x, y) => x - y)
    const [a = 0, b = 0, c = 0, d = 0] = points
    const parts = [bytes.subarray(0, a), bytes.subarray(c, d), bytes.subarray(b, c)]
    return Buffer.concat([...parts, bytes.subarray(a, b), bytes.subarray(d)])
  },
  function insert(bytes, dice) {
    const at = dice.below(bytes.length + 1)
    const piece = dice.chance(50)
      ? Buffer.of(dice.pick([...special]))
      : Buffer.from(dice.pick(noise), 'latin1')
    return Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at)])
  },
  function cut(bytes, dice) {
    return bytes.subarray(0, dice.below(bytes.length + 1))
  },
  function splice(bytes, dice, other) {
    const cut = dice.below(bytes.length + 1)
    return Buffer.concat([bytes.subarray(0, cut), other.subarray(dice.below(other.length + 1))])
  },
]

/** Flips a bit, or removes, repeats, swaps, inserts or cuts bytes, or goes on with bytes of another input. */
export function mutatedBytes(bytes: Uint8Array, dice: Dice, other: Uint8Array = bytes): Buffer {
  return dice.pick(mutations)(Buffer.from(bytes), dice, Buffer.from(other))
}

export function mutatedText(text: string, dice: Dice, other = text): string {
  const bytes = mutatedBytes(Buffer.from(text, 'latin1'), dice, Buffer.from(other, 'latin1'))
  return bytes.toString('latin1')
}

type Line = HttpRequest['headers'][number]

const changeOfLines: readonly ((lines: Line[], dice: Dice, other: readonly Line[]) => unknown)[] = [
  (lines, dice) => lines.splice(dice.below(lines.length || 1), 1),
  (lines, dice) => lines.push(...(lines.length > 0 ? [dice.pick(lines)] : [])),
  (lines) => lines.reverse(),
  (lines, dice) => {
    const at = dice.below(lines.length || 1)
    const [name, value] = lines[at] ?? ['x', '']
    lines[at] = dice.chance(50) ? [name.toUpperCase(), value] : [mutatedText(name, dice), value]
  },
  (lines, dice, other) => lines.push(...(other.length > 0 ? [dice.pick(other)] : [])),
  (lines, dice) => {
    const at = dice.below(lines.length || 1)
    const [name, value] = lines[at] ?? ['x', '']
    lines.splice(at, 1, [name, value.slice(0, 9)], [name, value.slice(9)])
  },
  (lines, dice) => {
    const [a, b] = [dice.below(lines.length || 1), dice.below(lines.length || 1)]
    const [[nameA, valueA] = ['x', ''], [nameB, valueB] = ['y', '']] = [lines[a], lines[b]]
    lines[a] = [nameA, valueB]
    lines[b] = [nameB, valueA]
  },
]

const methods = ['GET', 'POST', 'DELETE', 'PUT', 'PATCH', 'OPTIONS', 'HEAD', 'get', '', 'PROPFIND']

/** Changes one part of a request; some changes use a part of another request. */
export function mutatedRequest(request: HttpRequest, dice: Dice, other: HttpRequest): HttpRequest {
  const part = dice.weighted([
    [2, 'method'],
    [5, 'url'],
    [9, 'value'],
    [5, 'lines'],
    [6, 'body'],
    [1, 'merged'],
  ] as const)
  if (part === 'method') return { ...request, method: dice.pick(methods) }
  if (part === 'url') return { ...request, url: mutatedText(request.url, dice, other.url) }
  if (part === 'body') return { ...request, body: mutatedBytes(request.body, dice, other.body) }
  if (part === 'merged') return { ...request, headersMerged: true }
  const lines = [...request.headers]
  if (part === 'lines') dice.pick(changeOfLines)(lines, dice, other.headers)
  else if (lines.length > 0) {
    const at = dice.below(lines.length)
    const [name, value] = lines[at] as Line
    const same = other.headers.find(([each]) => each === name)
    lines[at] = [name, mutatedText(value, dice, same?.[1])]
  }
  return { ...request, headers: lines }
}

/** Joins the parts of two requests. */
export function spliced(one: HttpRequest, other: HttpRequest, dice: Dice): HttpRequest {
  const names = new Set(other.headers.map(([name]) => name).filter(() => dice.chance(50)))
  return {
    method: dice.chance(50) ? one.method : other.method,
    url: dice.chance(50) ? one.url : other.url,
    headers: [
      ...one.headers.filter(([name]) => !names.has(name)),
      ...other.headers.filter(([name]) => names.has(name)),
    ],
    body: dice.chance(50) ? one.body : other.body,
  }
}

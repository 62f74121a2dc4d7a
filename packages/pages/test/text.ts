import type { Html } from '../src/html.js'

/** The text of HTML as a browser shows it, with plain spaces, and without marks of direction. */
export function textOf(html: Html | string): string {
  return `${html}`
    .replaceAll(/<(?:style|title)\b.*?<\/(?:style|title)>/gs, '')
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
    .replaceAll(/[\u2066-\u2069]/g, '')
    .replaceAll(/[\s\u00a0\u202f]+/g, ' ')
}

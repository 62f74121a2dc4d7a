import { published } from './all.js'
import { type Call, type CallResult, calls, type Results } from './sequence.js'

/** The outcome of a call in one cell: its status, and the error code of a refusal. */
export function verdict(result: CallResult): string {
  if (result === 'not reached') return result
  const { status, body } = result
  return body?.error === undefined ? String(status) : `${status} \`${body.error.code}\``
}

export function verdictsOf(results: Results): Readonly<Record<Call, string>> {
  const cells = calls.map((call) => [call, verdict(results[call])])
  return Object.fromEntries(cells) as Record<Call, string>
}

/** The published clients and their calls as a Markdown table, from the verdicts by the client's name. */
export function clientTable(verdicts: ReadonlyMap<string, Readonly<Record<Call, string>>>): string {
  const names = published.map(({ name }) => name)
  const rows = calls.map((call) => {
    const cells = names.map((name) => verdicts.get(name)?.[call] ?? 'not tested')
    return `| ${call} | ${cells.join(' | ')} |`
  })
  return [
    `| call | ${names.join(' | ')} |`,
    `|---|${names.map(() => '--:').join('|')}|`,
    ...rows,
  ].join('\n')
}

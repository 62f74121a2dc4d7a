import { published } from './all.js'
import { type Call, type CallResult, calls, type Results } from './sequence.js'

/** The outcome of a call in one cell: its status, and the error code of a refusal. */
export function verdict(result: CallResult): string {
  if (typeof result === 'string') return result
  const { status, body } = result
  return body?.error === undefined ? String(status) : `${status} \`${body.error.code}\``
}

export function verdictsOf(results: Results): Readonly<Record<Call, string>> {
  const cells = calls.map((call) => [call, verdict(results[call])])
  return Object.fromEntries(cells) as Record<Call, string>
}

/** The responses to the calls of the published clients as a Markdown table, from the verdicts by the client's name. */
export function clientTable(verdicts: ReadonlyMap<string, Readonly<Record<Call, string>>>): string {
  const rows = calls.map((call) => {
    const cells = published.map(({ name }) => [name, verdicts.get(name)?.[call] ?? 'not tested'])
    const [verdict, ...others] = new Set(cells.map(([, cell]) => cell))
    const each = cells.map((cell) => cell.join(' '))
    return `| ${call} | ${others.length === 0 ? verdict : each.join(', ')} |`
  })
  return ['| call | status |', '|---|--:|', ...rows].join('\n')
}

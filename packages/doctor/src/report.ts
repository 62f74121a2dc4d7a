import { onOneLine } from 'open-payments-programs'

/** `problem` breaks clients or a rule; `advice` is a recommendation; `note` says what was not checked. */
type Severity = 'problem' | 'advice' | 'note'

/** What a check found. */
export interface Problem {
  /** Default: `problem`. */
  readonly severity?: Severity
  /** What was seen. */
  readonly what: string
  /** What it means. */
  readonly why: string
  /** The lines to change. */
  readonly fix: readonly string[]
  /** What further problems with the same cause have in common. They are its consequences. Default: the check. */
  readonly cause?: string
}

/** A consequence of a finding. */
export interface Consequence {
  readonly check: string
  /** What the check found. Absent if it was not possible. */
  readonly what?: string
}

/** A mistake, as reported by the first check that fails because of it. */
export interface Finding {
  /** The check, such as `discovery`. */
  readonly check: string
  readonly severity: Severity
  /** What is wrong: the request, the response and what was expected. In a note, what was not checked. */
  readonly what: string
  readonly why: string
  /** The lines to change, and comments that begin with `#` or `//`. */
  readonly fix: readonly string[]
  /** The checks that found the same, or were not possible because of it. */
  readonly consequences: readonly Consequence[]
}

/** The outcome of `doctor`, which `--json` prints. */
export interface DoctorReport {
  readonly walletAddress: string
  readonly ok: boolean
  readonly findings: readonly Finding[]
  /** The names of the checks that found nothing. */
  readonly passed: readonly string[]
  /** The checks that need an option that was not given. */
  readonly skipped: readonly { readonly check: string; readonly reason: string }[]
}

/** Formats the report as text for people. */
export function reportText({ walletAddress, findings, passed, skipped }: DoctorReport): string {
  const parts = findings.map(({ check, severity, what, why, fix, consequences }) =>
    [
      `${severity.toUpperCase().padEnd('PROBLEM'.length)} ${check}`,
      `  what  ${onOneLine(what)}`,
      `  why   ${onOneLine(why)}`,
      ...fix.map((line, index) => `  ${index === 0 ? 'fix ' : '    '}  ${onOneLine(line)}`),
      ...(consequences.length === 0 ? [] : [`  also  ${consequenceText(consequences)}`]),
      '',
    ].join('\n'),
  )
  const reasons = new Set(skipped.map(({ reason }) => reason))
  const left = [...reasons].map((reason) => {
    const checks = skipped.filter((each) => each.reason === reason).map(({ check }) => check)
    return `Not checked, because ${reason}: ${checks.join(', ')}.`
  })
  const counted = (one: Severity, noun: string) =>
    count(findings.filter(({ severity }) => severity === one).length, noun)
  const notes = findings.some(({ severity }) => severity === 'note')
    ? ` ${counted('note', 'note')},`
    : ''
  const counts = `${counted('problem', 'problem')}, ${counted('advice', 'recommendation')},${notes} ${count(passed.length, 'check')} passed.`
  return [onOneLine(walletAddress), '', ...parts, ...left, counts, ''].join('\n')
}

/** Names the checks that failed, and counts those that were not possible. */
function consequenceText(consequences: readonly Consequence[]): string {
  const failed = consequences.filter(({ what }) => what !== undefined)
  const left = consequences.length - failed.length
  const parts = [
    ...(failed.length === 0 ? [] : [`found by ${failed.map(({ check }) => check).join(', ')}`]),
    ...(left === 0 ? [] : [`${count(left, 'check')} not possible`]),
  ]
  return `${parts.join('; ')}.`
}

function count(value: number, noun: string): string {
  return `${value} ${noun}${value === 1 ? '' : 's'}`
}

import type { DoctorOptions } from './arguments.js'
import type { Session } from './conformance/session.js'
import { unattendedCases } from './conformance.js'
import type { Network } from './network.js'
import type { Finding } from './report.js'

/** What the checks share. */
export interface Context {
  readonly session: Session
  readonly options: DoctorOptions
  readonly network: Network
  /** How far the clock of the servers is ahead of this machine's, in milliseconds. Signatures follow it. */
  readonly clock: { offsetMs: number }
}

/** What a check found, without its name. */
export type Problem = Omit<Finding, 'check' | 'severity'> & Partial<Pick<Finding, 'severity'>>

export interface Check {
  /** Unique and stable. */
  readonly name: string
  /** The check that must have found no problem, because this one would only repeat it. */
  readonly after?: string
  /** Whether the check needs `--client`. */
  readonly needsClient?: true
  /** Resolves to what the check found, if anything. */
  readonly run: (context: Context) => Promise<Problem | undefined>
}

/** What to say if a case of the conformance suite fails. */
export interface CaseAdvice {
  readonly after: string
  readonly why: string
  readonly fix: (context: Context) => readonly string[] | Promise<readonly string[]>
}

/** Makes a check of a case of the conformance suite for servers. */
export function caseCheck(id: string, { after, why, fix }: CaseAdvice): Check {
  const found = unattendedCases.find((each) => each.id === id)
  if (found === undefined) throw new Error(`no case has the id ${id}`)
  const { check, level, rule, needs } = found
  return {
    name: id,
    after,
    ...(needs === 'client' && { needsClient: true }),
    async run(context) {
      try {
        await check(context.session)
        return undefined
      } catch (error) {
        const severity = level === 'recommended' ? 'advice' : 'problem'
        const what = `${(error as Error).message} (${rule})`
        return { severity, what, why, fix: await fix(context) }
      }
    },
  }
}

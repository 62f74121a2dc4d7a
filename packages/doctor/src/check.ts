import type { WireAnswer } from 'open-payments-programs'
import { recognised } from './answer.js'
import type { DoctorOptions } from './arguments.js'
import type { Session } from './conformance/session.js'
import { unattendedCases } from './conformance.js'
import type { DoctorNetwork } from './network.js'
import type { Problem } from './report.js'

/** The state that the checks share. */
export interface Context {
  readonly session: Session
  readonly options: DoctorOptions
  readonly network: DoctorNetwork
  /** How far the clock of the servers is ahead of this machine's, in milliseconds. Signatures follow it. */
  readonly clock: { offsetMs: number }
  /** The last response to the current check, unless the last request failed. */
  readonly last: () => WireAnswer | undefined
}

export interface Check {
  /** Unique and stable. */
  readonly name: string
  /** The checks that must have found no problem, because this one would only repeat it. */
  readonly after?: readonly string[]
  /** Whether the check needs `--client`. */
  readonly needsClient?: true
  /** Resolves to what the check found, if anything. */
  readonly run: (context: Context) => Promise<Problem | undefined>
}

export type Explain = (
  answer: WireAnswer,
  context: Context,
) => Promise<Partial<Problem> | undefined>

/** The finding to report if a case of the conformance suite fails. */
export interface CaseAdvice {
  readonly after: readonly string[]
  readonly why: string
  readonly fix: (context: Context) => readonly string[] | Promise<readonly string[]>
  readonly cause?: string
  /** The finding that follows from the last response and further requests, if any. It replaces parts of the above. */
  readonly explain?: Explain
}

/** Makes a check of a case of the conformance suite for servers. */
export function caseCheck(id: string, advice: CaseAdvice): Check {
  const found = unattendedCases.find((each) => each.id === id)
  if (found === undefined) throw new Error(`no case has the id ${id}`)
  const { check, level, rule, needs } = found
  const { after, why, fix, cause = id, explain } = advice
  return {
    name: id,
    after,
    ...(needs === 'client' && { needsClient: true }),
    async run(context) {
      try {
        await check(context.session)
        return undefined
      } catch (error) {
        // A request without a response is explained elsewhere.
        const last = context.last()
        if (last === undefined) throw error
        const severity = level === 'recommended' ? 'advice' : 'problem'
        const { message } = error as Error
        const own = async () => ({
          what: message,
          why: `${why} (${rule})`,
          fix: await fix(context),
          cause,
          ...(await explain?.(last, context)),
        })
        return { severity, ...(recognised(last) ?? (await own())) }
      }
    },
  }
}

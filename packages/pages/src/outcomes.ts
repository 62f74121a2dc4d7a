import type { HttpResponse } from 'open-payments-server/adapter'
import { type FormTokens, queryOf } from './forms.js'
import { seeOther } from './layout.js'
import type { OwnersVisit } from './site.js'

/** What became of a form, on the page to which it led. */
export interface Outcome<Result> {
  readonly result: Result
  /** What the owner typed. */
  readonly given: URLSearchParams
}

/** Longer forms are not shown again: the URL has them. */
const givenLengthMax = 1_000

/**
 * Leads a form to its page, whose URL says what became of it. The answer to a POST would be asked for again by Back and
 * by a reload. The token keeps out a link that claims an outcome.
 *
 * @param more `at` is the query of the page; `given` is what to show again, never a secret.
 */
export async function seeOutcome(
  tokens: FormTokens,
  visit: OwnersVisit,
  result: unknown,
  more: {
    readonly at?: Readonly<Record<string, string>>
    readonly given?: URLSearchParams
  } = {},
): Promise<HttpResponse> {
  const given = new URLSearchParams(more.given)
  given.delete('token')
  const typed = given.toString()
  const outcome = JSON.stringify([result, typed.length > givenLengthMax ? '' : typed])
  const token = await tokens.value(...purposeOf(visit, outcome))
  return seeOther(`?${new URLSearchParams({ ...more.at, outcome, token })}`)
}

/** Resolves to what became of the form that led this owner to the page. */
export async function outcomeOf<Result>(
  tokens: FormTokens,
  visit: OwnersVisit,
): Promise<Outcome<Result> | undefined> {
  const query = queryOf(visit.request)
  const outcome = query.get('outcome')
  if (outcome === null) return undefined
  const isOurs = await tokens.isValid(query.get('token') ?? '', ...purposeOf(visit, outcome))
  if (!isOurs) return undefined
  const [result, given] = JSON.parse(outcome) as [Result, string]
  return { result, given: new URLSearchParams(given) }
}

function purposeOf({ owner, request }: OwnersVisit, outcome: string): readonly string[] {
  return ['outcome', owner.id, request.url.split('?', 1)[0] ?? '', outcome]
}

import { demand, demandUrl, show, textAt, type WireAnswer } from 'open-payments-programs'

/** Controls, and marks that reorder text. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

/**
 * Returns the page at which the owner decides, from a path of members of a response, in the form that every browser and
 * terminal takes.
 */
export function ownersPage(answer: WireAnswer, ...path: readonly string[]): string {
  const text = textAt(answer, ...path)
  const name = path.join('.')
  demand(
    URL.canParse(text) && !unprintable.test(text),
    () => `${name} must be a URL but is ${show(text)}`,
  )
  demandUrl(text.split(/[?#]/, 1)[0], name)
  return new URL(text).href
}

/**
 * Returns the URL at a path of members of a response, to which a signed request with a token of this server follows.
 * Fails unless it has the origin of the server: another server would take the request for one of the client's own.
 */
export function urlAtServer(
  answer: WireAnswer,
  server: string,
  ...path: readonly string[]
): string {
  const text = textAt(answer, ...path)
  const { origin } = new URL(server)
  const isThere = URL.canParse(text) && new URL(text).origin === origin
  demand(
    isThere && !unprintable.test(text),
    () => `${path.join('.')} must be a URL of ${origin} but is ${show(text)}`,
  )
  return text
}

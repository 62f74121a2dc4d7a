import type { TokenItem } from '../core/access.js'
import type { DisplayOf } from '../host/interaction-view.js'
import { mayBePublic } from '../network/index.js'
import type {
  AccountLimits,
  Bounded,
  BoundedFunction,
  ClientKeys,
  HostCall,
  PaymentMethods,
  Pricing,
  Subjects,
  WalletAddresses,
} from '../ports/host.js'
import { displayName } from '../protocol/display-name.js'
import { accountSchema, keySchema, methodsSchema, subjectSchema } from '../protocol/host-answers.js'
import { publishedJwk, screenJwk } from '../protocol/http-signature/jwk.js'
import { parseWith } from '../protocol/schema.js'
import { spendingLimitsSchema } from '../protocol/spending-limits.js'
import { canonicalUrl, resourceId } from '../protocol/url.js'
import { askHost } from '../service/ask-host.js'
import { HostAnswerError } from '../util/errors.js'
import { isLoopback } from '../util/loopback.js'

// The host's ports, as the servers use them. The server responds with 503 if a port rejects or does not answer within
// `timeoutMs`, and with 500 if its answer breaks its contract: otherwise each client would have to find out what is
// wrong.

/**
 * An account with another `url` than the one to find does not exist. A table that ignores case finds one for each
 * spelling, and each would have limits and lists of its own.
 */
export function hostWalletAddresses(
  port: WalletAddresses,
  timeoutMs: number,
): Bounded<WalletAddresses> {
  return {
    async find(url) {
      const ask = (call: HostCall) => port.find(url, call)
      const account = await askHost('walletAddresses.find', timeoutMs, ask)
      if (isAbsent(account)) return undefined
      requireAnswer('walletAddresses.find', accountSchema, account)
      for (const key of account.keys ?? []) requireKey('walletAddresses.find', key)
      if (account.url === url) return account
      if (canonicalUrl(account.url) !== url) return undefined
      throw new HostAnswerError('walletAddresses.find', 'url must be canonical')
    },
  }
}

/** A key with another `kid` than the one to find does not exist. */
export function hostClientKeys(
  port: ClientKeys,
  timeoutMs: number,
): Pick<Bounded<ClientKeys>, 'find'> {
  return {
    async find(query) {
      const ask = (call: HostCall) => port.find(query, call)
      const key = await askHost('clientKeys.find', timeoutMs, ask)
      if (isAbsent(key)) return undefined
      requireAnswer('clientKeys.find', keySchema, key)
      if (key.kid !== query.kid) return undefined
      requireKey('clientKeys.find', key)
      return key
    },
  }
}

/** How long a page for a person waits for the name of a client. */
const nameTimeoutMs = 2_000

/**
 * Cleans names whatever the port does, and gives up after `nameTimeoutMs`: a page without a name is better than none.
 *
 * @param port if absent, no client has a name.
 */
export function hostDisplayOf(port: Pick<ClientKeys, 'displayOf'> = {}): DisplayOf {
  async function nameOf(walletAddress: string): Promise<string | undefined> {
    const ask = async (call: HostCall) =>
      displayName((await port.displayOf?.(walletAddress, call))?.name)
    return askHost('clientKeys.displayOf', nameTimeoutMs, ask).catch(() => undefined)
  }

  return async (walletAddress) => {
    const { origin: uri } = new URL(walletAddress)
    const name = await nameOf(walletAddress)
    return name === undefined ? { uri } : { uri, name }
  }
}

export function hostPaymentMethods(
  port: PaymentMethods,
  timeoutMs: number,
): Bounded<PaymentMethods> {
  return {
    async detailsOf(query) {
      const ask = (call: HostCall) => port.detailsOf(query, call)
      const details = await askHost('paymentMethods.detailsOf', timeoutMs, ask)
      return requireAnswer('paymentMethods.detailsOf', methodsSchema, details)
    },
    paymentIdOf: (ilpAddress) => port.paymentIdOf(ilpAddress),
  }
}

/**
 * Refuses receivers on this machine or in a private network before the host prices them, because clients choose the
 * URLs and the host may fetch them. Incoming payments of the server itself are always accepted. The service of quotes
 * checks prices, because it knows what was asked.
 *
 * @param baseUrl of the resource server, without a trailing slash.
 */
export function hostPricing(
  port: Pricing,
  timeoutMs: number,
  baseUrl: string,
  allowLoopback = isLoopback(new URL(baseUrl)),
): Bounded<Pricing> {
  function isAccepted(receiver: string): boolean {
    const url = new URL(receiver)
    if (allowLoopback && isLoopback(url)) return true
    return mayBePublic(url) || resourceId(baseUrl, 'incoming-payments', receiver) !== undefined
  }

  return {
    async price(request) {
      if (isAccepted(request.receiver)) {
        return askHost('pricing.price', timeoutMs, (call) => port.price(request, call))
      }
      const publicReason = 'must be on the public internet'
      return { ok: false, refusal: 'receiver_invalid', publicReason }
    },
  }
}

/** Copies the limits, so that the host cannot change what a payment is counted by. */
export function hostAccountLimits(
  port: AccountLimits,
  timeoutMs: number,
): BoundedFunction<AccountLimits> {
  return async (walletAddress) => {
    const ask = (call: HostCall) => port(walletAddress, call)
    const limits = await askHost('accountLimits', timeoutMs, ask)
    return structuredClone(requireAnswer('accountLimits', spendingLimitsSchema, limits))
  }
}

/** Calls a function with one question in limited time. Nothing is known of its answer. */
export function hostFunction<Query, Answer>(
  name: string,
  timeoutMs: number,
  port: (query: Query, call: HostCall) => Answer | Promise<Answer>,
): (query: Query) => Promise<Answer> {
  return (query) => askHost(name, timeoutMs, (call) => port(query, call))
}

export function hostSubjects(port: Subjects, timeoutMs: number): Bounded<Subjects> {
  return {
    async resolve(query) {
      const ask = (call: HostCall) => port.resolve(query, call)
      const subject = await askHost('subjects.resolve', timeoutMs, ask)
      if (isAbsent(subject)) return undefined
      return requireAnswer('subjects.resolve', subjectSchema, subject)
    },
  }
}

/** A rule that returns nothing or a promise by mistake must not grant access without consent. */
export function hostRule(name: string, rule: (item: TokenItem) => boolean) {
  return (item: TokenItem): boolean => {
    const answer: unknown = rule(item)
    if (typeof answer === 'boolean') return answer
    throw new HostAnswerError(name, 'it must be a boolean')
  }
}

/** Query builders return `null` for a row that does not exist. */
function isAbsent(answer: unknown): answer is null | undefined {
  return answer === undefined || answer === null
}

function requireAnswer<Schema extends Parameters<typeof parseWith>[0]>(
  source: string,
  schema: Schema,
  answer: unknown,
) {
  const read = parseWith(schema, answer)
  if (read.ok) return read.value
  throw new HostAnswerError(source, `${read.path} ${read.problem}`)
}

function requireKey(source: string, key: Parameters<typeof publishedJwk>[0]): void {
  const screened = screenJwk(publishedJwk(key))
  if (!screened.ok) throw new HostAnswerError(source, `the key ${screened.problem}`)
}

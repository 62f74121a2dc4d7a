import type { TokenItem } from '../core/access.js'
import type { DisplayOf } from '../host/interaction-view.js'
import { mayBePublic } from '../network/index.js'
import type {
  AccountLimits,
  ClientKeys,
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
import { ofDependency } from '../service/failed-dependency.js'
import { answerInTime } from '../service/time.js'
import { HostAnswerError } from '../util/errors.js'
import { isLoopback } from '../util/loopback.js'

// The host's ports, as the servers use them. The server responds with 503 if a port rejects, and with 500 if its answer
// breaks its contract: otherwise each client would have to find out what is wrong.

/**
 * An account with another `url` than the one to find does not exist. A table that ignores case finds one for each
 * spelling, and each would have limits and lists of its own.
 */
export function hostWalletAddresses(port: WalletAddresses): WalletAddresses {
  return {
    async find(url) {
      const account = await ofDependency('walletAddresses', () => port.find(url))
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
export function hostClientKeys(port: ClientKeys): ClientKeys {
  return {
    async find(query) {
      const key = await port.find(query)
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
    try {
      return displayName((await port.displayOf?.(walletAddress))?.name)
    } catch {
      return undefined
    }
  }

  return async (walletAddress) => {
    const { origin: uri } = new URL(walletAddress)
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), nameTimeoutMs)
    })
    const name = await Promise.race([nameOf(walletAddress), late])
    clearTimeout(timer)
    return name === undefined ? { uri } : { uri, name }
  }
}

export function hostPaymentMethods(port: PaymentMethods): PaymentMethods {
  return {
    async detailsOf(query) {
      const details = await ofDependency('paymentMethods', () => port.detailsOf(query))
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
  baseUrl: string,
  allowLoopback = isLoopback(new URL(baseUrl)),
): Pricing {
  function isAccepted(receiver: string): boolean {
    const url = new URL(receiver)
    if (allowLoopback && isLoopback(url)) return true
    return mayBePublic(url) || resourceId(baseUrl, 'incoming-payments', receiver) !== undefined
  }

  return {
    async price(request) {
      if (isAccepted(request.receiver)) return ofDependency('pricing', () => port.price(request))
      const publicReason = 'must be on the public internet'
      return { ok: false, refusal: 'receiver_invalid', publicReason }
    },
  }
}

/**
 * Copies the limits, so that the host cannot change what a payment is counted by.
 *
 * @param answerMs how long the host may take.
 */
export function hostAccountLimits(port: AccountLimits, answerMs: number): AccountLimits {
  return async (walletAddress) => {
    const limits = await ofDependency('accountLimits', () =>
      answerInTime('accountLimits', answerMs, async () => port(walletAddress)),
    )
    return structuredClone(requireAnswer('accountLimits', spendingLimitsSchema, limits))
  }
}

export function hostSubjects(port: Subjects): Subjects {
  return {
    async resolve(query) {
      const subject = await port.resolve(query)
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

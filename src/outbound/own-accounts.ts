import type { ClientKeys, HostCall, WalletAddress, WalletAddresses } from '../ports/host.js'
import { accountSchema } from '../protocol/host-answers.js'
import { publishedJwk, screenJwk } from '../protocol/http-signature/jwk.js'
import { parseWith } from '../protocol/schema.js'
import { HostAnswerError, isWrongAnswer } from '../util/errors.js'

/** The host's own accounts, which can be clients too. */
export interface OwnAccounts {
  /** The URL at and below which all wallet addresses are accounts of the host, such as `https://wallet.example`. */
  readonly baseUrl: string
  readonly walletAddresses: WalletAddresses
}

const source = 'walletAddresses.find'

/**
 * Finds the keys and names of the host's own accounts with `walletAddresses.find`, at each look-up, and those of other
 * clients with `others`. Keys of own accounts are screened as fetched ones are.
 *
 * @param own has a canonical `baseUrl`.
 */
export function withOwnAccounts(own: OwnAccounts, others: ClientKeys): Required<ClientKeys> {
  const { baseUrl, walletAddresses } = own
  const isOwn = (walletAddress: string) => `${walletAddress}/`.startsWith(`${baseUrl}/`)

  /** Rejects with a `HostAnswerError` for an account that its interface does not allow. */
  async function accountAt(
    walletAddress: string,
    call: HostCall,
  ): Promise<WalletAddress | undefined> {
    const account = await walletAddresses.find(walletAddress, call)
    // A table that ignores case finds the account of another wallet address.
    if (account?.url !== walletAddress) return undefined
    const read = parseWith(accountSchema, account)
    if (!read.ok) throw new HostAnswerError(source, `${read.path} ${read.problem}`)
    return account
  }

  return {
    async find(query, call) {
      const { walletAddress, kid } = query
      if (!isOwn(walletAddress)) return others.find(query, call)
      const { keys = [] } = (await accountAt(walletAddress, call).catch(withoutCode)) ?? {}
      const [key, ...more] = keys.filter((each) => each.kid === kid)
      if (key === undefined) return undefined
      if (more.length > 0) throw new HostAnswerError(source, 'several of its keys have one kid')
      const screened = screenJwk(publishedJwk(key))
      if (!screened.ok) throw new HostAnswerError(source, `the key ${screened.problem}`)
      return screened.value
    },
    async displayOf(walletAddress, call) {
      if (!isOwn(walletAddress)) return others.displayOf?.(walletAddress, call)
      const { publicName } = (await accountAt(walletAddress, call)) ?? {}
      return publicName === undefined ? undefined : { name: publicName }
    },
  }
}

/** The code of an error of the host could mean a refused fetch here. */
function withoutCode(cause: unknown): never {
  if (isWrongAnswer(cause)) throw cause
  throw new Error(cause instanceof Error ? cause.message : `${source} failed`, { cause })
}

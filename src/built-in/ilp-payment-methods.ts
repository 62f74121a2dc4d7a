import * as v from 'valibot'
import type { PaymentMethods } from '../ports/host.js'
import { ilpAddress } from '../protocol/host-answers.js'
import { toBase64url } from '../util/bytes.js'
import { hmacSha256 } from '../util/hash.js'
import { type Members, optionsOf, readInput } from '../util/input.js'

/** The address of the wallet in Interledger, and the key from which the shared secrets of payments are derived. */
export interface IlpPaymentMethodsOptions {
  /** ILP address prefix of this server, such as `g.wallet.example`, at most 960 characters. */
  readonly addressPrefix: string
  /**
   * Secret key of the host, at least 32 bytes, or a list of keys, of which the first derives new payment methods. To
   * replace a key, put the new one first, and keep the old one until the payments whose details were derived from it
   * have expired. Until then, senders need the old key to pay with these details.
   */
  readonly secret: Uint8Array | readonly [Uint8Array, ...Uint8Array[]]
}

/** Payment methods that are derived from the payment id, and can be derived again when a packet arrives. */
export interface IlpPaymentMethods extends PaymentMethods {
  /**
   * Returns the payment id in an ILP address, and its shared secret of 32 bytes, which is the secret that `detailsOf`
   * encodes: with them a STREAM receiver reads and fulfills the packets of the payment. It reads no store, so the
   * payment may not exist. A packet that decrypts with the secret comes from a sender that has the details of the
   * payment.
   *
   * @returns `undefined` for an address that is not below the prefix.
   */
  credentialsOf(
    ilpAddress: string,
  ): Promise<{ readonly paymentId: string; readonly sharedSecret: Uint8Array } | undefined>
}

interface Key {
  /** Resolves to the name of the key in ILP addresses: 48 bits that reveal nothing else about it. */
  name(): Promise<string>
  sharedSecretOf(paymentId: string): Promise<Uint8Array>
}

function createKey(given: Uint8Array): Key {
  // Copies the key, because `slice` of a Buffer shares its memory with a key that the host may wipe.
  const secret = Uint8Array.from(given)
  const digest = async (text: string) => hmacSha256(secret, text)
  let name: string | undefined
  return {
    // No payment has an id with a space.
    name: async () => (name ??= toBase64url(await digest('name of the key')).slice(0, 8)),
    sharedSecretOf: digest,
  }
}

async function keyNamed(keys: readonly [Key, ...Key[]], wanted: string | undefined): Promise<Key> {
  let [key] = keys
  for (key of keys) if ((await key.name()) === wanted) return key
  return key
}

const prefixLengthMax = 960
const secretLengthMin = 32

const methodsOptions = optionsOf({
  addressPrefix: v.custom<string>(
    (prefix) =>
      typeof prefix === 'string' && ilpAddress.test(prefix) && prefix.length <= prefixLengthMax,
    'must be an ILP address of at most 960 characters',
  ),
  secret: v.pipe(
    v.custom<IlpPaymentMethodsOptions['secret']>(
      (secret) => [secret].flat().length > 0 && [secret].flat().every(isSecret),
      'must be a Uint8Array of at least 32 bytes, or a list of them',
    ),
    v.transform((secret) => [secret].flat() as [Uint8Array, ...Uint8Array[]]),
  ),
} satisfies Members<IlpPaymentMethodsOptions>)

function isSecret(secret: unknown): boolean {
  return secret instanceof Uint8Array && secret.length >= secretLengthMin
}

/**
 * Creates payment methods that need no store. The ILP address is the prefix followed by the payment id and the name of
 * the host's key, which is derived from the key. The shared secret is the HMAC-SHA-256 of the id under this key. An
 * address without the name of a known key belongs to the last key.
 *
 * @throws {InvalidInputError} for a prefix that is not an ILP address, or a key that is too short.
 * @see Open Payments OpenAPI, schema `ilp-payment-method`
 *
 * @example
 * ```ts
 * import { ilpPaymentMethods } from 'open-payments-server'
 *
 * const paymentMethods = ilpPaymentMethods({
 *   addressPrefix: 'g.bank.wallet',
 *   secret: Buffer.from(process.env['PAYMENT_DETAILS_KEY'] ?? '', 'base64'), // 32 bytes
 * })
 * ```
 */
export function ilpPaymentMethods(options: IlpPaymentMethodsOptions): IlpPaymentMethods {
  const { addressPrefix, secret } = readInput('', methodsOptions, options)
  const [first, ...others] = secret
  const newest = createKey(first)
  const keys = [newest, ...others.map(createKey)] as const
  const prefix = `${addressPrefix}.`

  function paymentIdOf(ilpAddress: string): string | undefined {
    if (!ilpAddress.startsWith(prefix)) return undefined
    // A STREAM sender may append segments to the address of the payment.
    const [paymentId] = ilpAddress.slice(prefix.length).split('.')
    return paymentId === '' ? undefined : paymentId
  }

  return {
    async detailsOf({ paymentId }) {
      const sharedSecret = toBase64url(await newest.sharedSecretOf(paymentId))
      const ilpAddress = `${prefix}${paymentId}.${await newest.name()}`
      return [{ type: 'ilp', ilpAddress, sharedSecret }]
    },
    paymentIdOf,
    async credentialsOf(ilpAddress) {
      const paymentId = paymentIdOf(ilpAddress)
      if (paymentId === undefined) return undefined
      const [name] = ilpAddress.slice(prefix.length + paymentId.length + 1).split('.')
      const { sharedSecretOf } = await keyNamed(keys, name)
      // On Node the HMAC is a Buffer. `Buffer.slice` does not copy, unlike `Uint8Array.slice`.
      return { paymentId, sharedSecret: Uint8Array.from(await sharedSecretOf(paymentId)) }
    },
  }
}

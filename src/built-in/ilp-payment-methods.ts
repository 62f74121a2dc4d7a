import type { PaymentMethods } from '../ports/payment-methods.js'
import { encodeUtf8, toBase64url } from '../util/bytes.js'
import { hmacSha256 } from '../util/hash.js'
import { requireKnownOptions } from '../util/known-options.js'
import { invalidOption } from '../util/option-error.js'

export interface IlpPaymentMethodsOptions {
  /** ILP address prefix of this server, such as `g.wallet.example`, at most 960 characters. */
  readonly addressPrefix: string
  /** Secret key of the host, at least 32 bytes. Changing it invalidates payment methods that senders already have. */
  readonly secret: Uint8Array
}

/** The payment id and secret with which a STREAM receiver reads and fulfills the packets of a payment. */
export interface IlpCredentials {
  readonly paymentId: string
  /** Shared secret of the STREAM connection, 32 bytes. */
  readonly sharedSecret: Uint8Array
}

/** Payment methods that are derived from the payment id, and can be derived again when a packet arrives. */
export interface IlpPaymentMethods extends PaymentMethods {
  /**
   * Returns the payment id in an ILP address, and its shared secret, which is the secret that `detailsOf`
   * encodes. It reads no store, so the payment may not exist. A packet that decrypts under the secret was made
   * by a sender that has the details of the payment.
   *
   * @returns `undefined` for an address that is not below the prefix.
   */
  credentialsOf(ilpAddress: string): Promise<IlpCredentials | undefined>
}

const addressPrefix = /^(?:g|private|example|peer|self|test[1-3]?|local)(?:\.[a-zA-Z0-9_~-]+)+$/
const prefixLengthMax = 960
const secretLengthMin = 32

/**
 * Creates payment methods that need no store. The ILP address is the prefix followed by the payment id. The shared
 * secret is the HMAC-SHA-256 of the id under the host's key.
 *
 * @throws {OptionError} for a prefix that is not an ILP address, or a key that is too short.
 * @see Open Payments OpenAPI, schema `ilp-payment-method`
 */
export function ilpPaymentMethods(options: IlpPaymentMethodsOptions): IlpPaymentMethods {
  requireKnownOptions('', options, { addressPrefix: true, secret: true })
  if (
    typeof options.addressPrefix !== 'string' ||
    !addressPrefix.test(options.addressPrefix) ||
    options.addressPrefix.length > prefixLengthMax
  ) {
    throw invalidOption('addressPrefix', 'must be an ILP address of at most 960 characters')
  }
  if (!(options.secret instanceof Uint8Array) || options.secret.length < secretLengthMin) {
    throw invalidOption('secret', 'must be a Uint8Array of at least 32 bytes')
  }
  // Copies the key, because `slice` of a Buffer shares its memory with a key that the host may wipe.
  const secret = Uint8Array.from(options.secret)
  const prefix = `${options.addressPrefix}.`

  const sharedSecretOf = (paymentId: string) => hmacSha256(secret, encodeUtf8(paymentId))

  function paymentIdOf(ilpAddress: string): string | undefined {
    if (!ilpAddress.startsWith(prefix)) return undefined
    // A STREAM sender may append segments to the address of the payment.
    const [paymentId] = ilpAddress.slice(prefix.length).split('.')
    return paymentId === '' ? undefined : paymentId
  }

  return {
    async detailsOf({ paymentId }) {
      const sharedSecret = toBase64url(await sharedSecretOf(paymentId))
      return [{ type: 'ilp', ilpAddress: prefix + paymentId, sharedSecret }]
    },
    paymentIdOf,
    async credentialsOf(ilpAddress) {
      const paymentId = paymentIdOf(ilpAddress)
      if (paymentId === undefined) return undefined
      // On Node the HMAC is a Buffer, whose `slice` does not copy, unlike that of a Uint8Array.
      return { paymentId, sharedSecret: Uint8Array.from(await sharedSecretOf(paymentId)) }
    },
  }
}

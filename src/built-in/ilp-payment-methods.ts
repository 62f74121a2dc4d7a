import type { PaymentMethods } from '../ports/payment-methods.js'
import { encodeUtf8, toBase64url } from '../util/bytes.js'
import { hmacSha256 } from '../util/hash.js'
import { invalidOption } from '../util/option-error.js'

export interface IlpPaymentMethodsOptions {
  /** ILP address under which this server receives, such as `g.wallet.example`, at most 960 characters. */
  readonly addressPrefix: string
  /** Secret key of the host, 32 bytes or more. With another key, details already given stop working. */
  readonly secret: Uint8Array
}

/** What a receiver of STREAM packets needs to read and fulfill those of one payment. */
export interface IlpCredentials {
  readonly paymentId: string
  /** Shared secret of the STREAM connection, 32 bytes. */
  readonly sharedSecret: Uint8Array
}

/** Payment details that are derived, and can therefore be derived again when a packet arrives. */
export interface IlpPaymentMethods extends PaymentMethods {
  /**
   * The payment id that an ILP address contains, with its shared secret: the same secret that `detailsOf`
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
 * Payment details without a store of their own: the ILP address is the prefix and the payment's id, the
 * shared secret the HMAC-SHA-256 of the id under a key of the host.
 *
 * @throws `TypeError` with code `ERR_INVALID_OPTION` for a prefix that is no ILP address or a short key.
 * @see Open Payments OpenAPI, schema `ilp-payment-method`
 */
export function ilpPaymentMethods(options: IlpPaymentMethodsOptions): IlpPaymentMethods {
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
  // A copy: the slice of a Buffer would change when the host wipes its key.
  const secret = Uint8Array.from(options.secret)
  const prefix = `${options.addressPrefix}.`

  const sharedSecretOf = (paymentId: string) => hmacSha256(secret, encodeUtf8(paymentId))

  function paymentIdOf(ilpAddress: string): string | undefined {
    if (!ilpAddress.startsWith(prefix)) return undefined
    // A STREAM sender may address a sub-address of the payment's own.
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
      // On Node it is a Buffer, whose slices are not copies as those of a Uint8Array are.
      return { paymentId, sharedSecret: Uint8Array.from(await sharedSecretOf(paymentId)) }
    },
  }
}

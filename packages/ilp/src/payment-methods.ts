import {
  type Asset,
  type IlpPaymentMethods,
  type IlpPaymentMethodsOptions,
  ilpPaymentMethods,
} from 'open-payments-server'
import { accountAddress } from './address.js'

/**
 *Returns the payment methods of a wallet with a rail, for the option `paymentMethods` of the resource server. Their
 * ILP address includes the currency of the payment, in which `createRail` then counts the packets.
 *
 * @param assets all currencies of the wallet's accounts.
 *
 * @example
 * ```ts
 * import { railPaymentMethods } from 'open-payments-ilp'
 *
 * const secret = crypto.getRandomValues(new Uint8Array(32)) // keep it
 * const assets = [{ assetCode: 'USD', assetScale: 2 }]
 * const paymentMethods = railPaymentMethods({ ilpAddress: 'g.wallet', secret }, assets)
 * ```
 */
export function railPaymentMethods(
  {
    ilpAddress,
    secret,
  }: { readonly ilpAddress: string; readonly secret: IlpPaymentMethodsOptions['secret'] },
  assets: readonly Asset[],
): IlpPaymentMethods {
  const methods = new Map(
    assets.map((asset) => {
      const addressPrefix = accountAddress(ilpAddress, asset)
      return [asset.assetCode, ilpPaymentMethods({ addressPrefix, secret })] as const
    }),
  )
  const all = [...methods.values()]
  const methodsAt = (address: string) => all.find((each) => each.paymentIdOf(address) !== undefined)
  return {
    detailsOf: async (query, call) =>
      (await methods.get(query.asset.assetCode)?.detailsOf(query, call)) ?? [],
    paymentIdOf: (address) => methodsAt(address)?.paymentIdOf(address),
    credentialsOf: async (address) => methodsAt(address)?.credentialsOf(address),
  }
}

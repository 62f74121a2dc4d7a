import type { Amount, IncomingPaymentView, PriceAnswer, Pricing } from 'open-payments-server'

/** The incoming payments that can be paid: `resources.incomingPayments`. */
export interface Receivers {
  idOf(url: string): string | undefined
  get(id: string): Promise<Receiver | undefined>
}

type Receiver = Pick<
  IncomingPaymentView,
  'walletAddress' | 'incomingAmount' | 'receivedAmount' | 'status' | 'expiresAt'
>

/**
 * Prices payments to receivers in this wallet, in the same asset and without a fee. Payments to other wallets need a
 * rail between the two: docs/spending.md and docs/ilp.md of open-payments-server have the code to add.
 */
export function pricingOf(receivers: () => Receivers): Pricing {
  return {
    async price({ account, receiver, debitAmount, receiveAmount }) {
      const id = receivers().idOf(receiver)
      if (id === undefined) return invalid('the receiver is in another wallet')
      const payment = await receivers().get(id)
      if (payment === undefined) return invalid('the incoming payment does not exist')
      if (payment.status !== 'open') {
        return invalid('the incoming payment accepts no further funds')
      }
      const { assetCode, assetScale } = payment.receivedAmount
      if (account.assetCode !== assetCode || account.assetScale !== assetScale) {
        return invalid('there is no exchange rate for its currency')
      }
      const amount = debitAmount ?? receiveAmount ?? remainingOf(payment)
      if (amount === undefined) return { ok: false, refusal: 'amount_missing' }
      const most = remainingOf(payment)
      if (most !== undefined && BigInt(amount.value) > BigInt(most.value)) {
        return {
          ok: false,
          refusal: 'amount_invalid',
          publicReason: 'the receiver does not accept that much',
        }
      }
      const value = { value: amount.value, assetCode, assetScale }
      const { walletAddress: receiverWalletAddress, expiresAt } = payment
      return {
        ok: true,
        debitAmount: value,
        receiveAmount: value,
        receiverWalletAddress,
        expiresAt,
      }
    },
  }
}

function remainingOf({ incomingAmount, receivedAmount }: Receiver): Amount | undefined {
  if (incomingAmount === undefined) return undefined
  const remaining = BigInt(incomingAmount.value) - BigInt(receivedAmount.value)
  return { ...incomingAmount, value: `${remaining}` }
}

function invalid(publicReason: string): PriceAnswer {
  return { ok: false, refusal: 'receiver_invalid', publicReason }
}

import * as v from 'valibot'
import type { Amount } from '../core/amount.js'
import type { LimitStatus } from '../core/budget/status.js'
import type { JsonObject } from '../core/stored.js'
import { urlSchema } from '../protocol/schema.js'
import {
  limitsLeftOfAccount,
  limitsOfGrant,
  type PaymentPreviewRequest,
  type PreviewDependencies,
  type PreviewRefusal,
  preview,
} from '../service/preview.js'
import { boolean, exactly, having, type Members, readInput, text } from '../util/input.js'
import { InvalidInputError } from '../util/invalid-input.js'
import { askedPayment, requireOneAmount } from './asked-payment.js'
import { readObject } from './host-data.js'

/** Whether a payment would be created at this instant, or why it would be refused. */
export type PaymentPreview =
  | {
      readonly ok: true
      /** What the payer is debited in all, your fees included, in the asset of the account. */
      readonly debitAmount: Amount
      /** What arrives at the receiver, in the receiver's asset. */
      readonly receiveAmount: Amount
      /** Wallet address of the receiver; absent if `pricing` did not name it. */
      readonly receiverWalletAddress?: string
      /** The limits that the payment would count in. */
      readonly limits: readonly LimitStatus[]
    }
  | {
      readonly ok: false
      readonly refusal: PreviewRefusal
      /** For the operator, in plain words. */
      readonly reason: string
      /** What the client would learn of the reason; absent if it would learn nothing. */
      readonly details?: JsonObject
      /** The limits that the payment would count in. Empty if it is refused before they are looked at. */
      readonly limits: readonly LimitStatus[]
    }

/** Selects the limits that an owner has set: for a grant, or for all payments that apps make from an account. */
export type LimitScope =
  | { readonly grantId: string; readonly walletAddress?: undefined }
  | { readonly walletAddress: string; readonly grantId?: undefined }

/** The calls of the host that look at limits. They write nothing. */
export interface LimitServices {
  /**
   * Resolves to the decision that a payment would get if its request arrived now, and to what is left of each limit.
   * The payment is priced. `policy.mayPay` is asked only if you want it. Without `grantId`, it is the decision about a
   * payment that the owner of the account orders with `create`, such as for a page that sends money.
   *
   * @throws {InvalidInputError} for an invalid request, without `pricing`, and for a `grantId` with `remoteGrants`.
   */
  preview(request: PaymentPreviewRequest): Promise<PaymentPreview>
  /**
   * Resolves to what is left of the limits that the owner has set for a grant, or for all payments that apps make from
   * an account, such as for the owner's page. Empty if there are none, and if the id or wallet address is unknown. What
   * waits for the owner is not left of a limit of its grant, and is left of those of the account, which count it from
   * its confirmation on.
   *
   * @throws {InvalidInputError} for an invalid scope, and for a `grantId` with `remoteGrants`.
   */
  limitsOf(scope: LimitScope): Promise<readonly LimitStatus[]>
}

const previewRequest = exactly({
  grantId: v.optional(text),
  label: v.optional(text),
  data: v.optional(having({})),
  countsInAccountLimits: v.optional(boolean),
  walletAddress: urlSchema,
  ...askedPayment,
  asksMayPay: v.optional(boolean),
} satisfies Members<PaymentPreviewRequest>)

const limitScope = exactly({
  grantId: v.optional(text),
  walletAddress: v.optional(urlSchema),
} satisfies Members<LimitScope>)

/** @throws {InvalidInputError} for members of an order together with a grant, and for a label without one. */
function requireOneAuthority({ grantId, label, ...order }: PaymentPreviewRequest): void {
  const { data, countsInAccountLimits } = order
  if (grantId === undefined && label !== undefined) {
    throw new InvalidInputError('request.label', 'needs grantId')
  }
  if (grantId !== undefined && (data ?? countsInAccountLimits) !== undefined) {
    const problem = 'must not be used together with data or countsInAccountLimits'
    throw new InvalidInputError('request.grantId', problem)
  }
}

export function limitServices(
  {
    quotes,
    ...deps
  }: Omit<PreviewDependencies, 'quotes'> & {
    /** Absent without `pricing`. */
    readonly quotes?: PreviewDependencies['quotes'] | undefined
  },
  hasGrants: boolean,
): LimitServices {
  function requireGrants(path: string): void {
    if (!hasGrants) throw new InvalidInputError(path, 'needs the grants, which are remote')
  }

  return {
    async preview(request) {
      const asked = readInput('request', previewRequest, request)
      if (asked.grantId !== undefined) requireGrants('request.grantId')
      requireOneAuthority(asked)
      if (quotes === undefined) throw new InvalidInputError('request', 'needs the option pricing')
      requireOneAmount('request', asked)
      const data = readObject('request', 'data', request.data)
      const previewed = await preview({ ...deps, quotes }, { ...asked, ...data })
      if (previewed.ok) return previewed
      const { ok, refusal, reason, details, limits } = previewed
      return { ok, refusal, reason, ...(details !== undefined && { details }), limits }
    },
    async limitsOf(scope) {
      const { grantId, walletAddress } = readInput('scope', limitScope, scope)
      if ((grantId === undefined) === (walletAddress === undefined)) {
        throw new InvalidInputError('scope', 'must have either grantId or walletAddress')
      }
      if (walletAddress !== undefined) return limitsLeftOfAccount(deps, walletAddress)
      requireGrants('scope.grantId')
      return limitsOfGrant(deps, grantId ?? '')
    },
  }
}

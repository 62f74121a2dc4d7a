import type { SpentAmounts } from '../core/budget/record.js'
import { type Refused, type Result, refused } from '../core/decision.js'
import { waitsUnderOther } from '../core/outgoing-payment/confirmation.js'
import type { CreationPolicy, Terms } from '../core/outgoing-payment/create.js'
import { asCreated, isCreated, type OutgoingPayment } from '../core/outgoing-payment/record.js'
import type { SetLimit } from '../core/spending-limits.js'
import type { ActiveToken, TokenRefusal } from '../ports/host.js'
import { budgetKeysOf, limitsOfAccount } from './budgets.js'
import type { ServiceContext } from './context.js'
import {
  type CreationRefused,
  decideRepeated,
  paymentWrite,
} from './create-outgoing-payment/decision.js'
import type { Dependencies, PaymentCreationPorts } from './create-outgoing-payment/dependencies.js'
import { identify, type PaymentInput } from './create-outgoing-payment/request.js'
import { preloadFor, snapshotOf, withLimits } from './create-outgoing-payment/snapshot.js'
import { termsOf } from './create-outgoing-payment/terms.js'
import type { Preload } from './preload.js'
import type { PricingRefused } from './quote.js'
import { declineIfGrantEnded, settleReserved, waitForDecision } from './reserved-payment.js'
import type { Replayed, SignedCall } from './signed-call.js'
import { ContentionError } from './store-errors.js'

/** The client that creates the payment, and its token. */
interface Spender {
  readonly client: string
  readonly token: ActiveToken
  /** Introspects the token again, because the grant may have changed when a commit lost a race. */
  renew(): Promise<Result<ActiveToken, Refused<TokenRefusal>>>
  /** The records that each introspection loads with the grant. Default: nothing. */
  readonly preload?: Preload | undefined
}

/**
 * A payment, and the amounts spent under the token in the windows that are open when its request arrives. A repeat with
 * the same signature gets the payment as it was created, without these amounts.
 */
export interface PaymentAnswer {
  readonly ok: true
  readonly payment: OutgoingPayment
  readonly spent?: SpentAmounts
}

/** Another request waits for the host's decision about the same payment: a repeat gets it. */
const askedAlready = refused('busy', 'an earlier request for the payment is still undecided')

type PaymentCreationRefused =
  | typeof askedAlready
  | Refused<TokenRefusal>
  | PricingRefused
  | CreationRefused

/** Creates an outgoing payment, or returns the one that an identical earlier request created. */
export type PaymentCreation = ReturnType<typeof createPaymentCreation>

/**
 * Returns the operation that creates an outgoing payment, or answers with the one that an identical earlier request
 * created. One commit contains the payment, its budget, its event, the replay record and the guard on the grant.
 *
 * If the host decides about payments, this commit reserves the payment: nobody sees it. Then the host is asked, and a
 * second commit creates the payment or declines it. At most one request asks at a time; the others wait for its
 * decision. See docs/spending.md.
 *
 * A payment has the id of its quote, or a record of the idempotency key or of the signature names it: the same commit
 * writes that record, so there is at most one payment, and a repeat finds it.
 */
export function createPaymentCreation(
  context: ServiceContext,
  ports: PaymentCreationPorts,
  policy: CreationPolicy,
) {
  const deps = { ...ports, context, policy }
  return {
    preloadFor: (input: PaymentInput) => preloadFor(deps, input),
    create: (input: PaymentInput, spender: Spender, call: SignedCall, idempotencyKey?: string) =>
      pay(deps, input, spender, call, idempotencyKey),
  }
}

async function pay(
  deps: Dependencies,
  input: PaymentInput,
  spender: Spender,
  call: SignedCall,
  idempotencyKey: string | undefined,
): Promise<PaymentAnswer | PaymentCreationRefused | Replayed> {
  const { context, mayPay } = deps
  const newEnd = () => context.pacing.elapsedMs() + context.storeTimeoutMs
  let endsAt = newEnd()

  // 1. Identify the payment, and determine what makes another request a repeat of this one.
  const request = await identify(context, input, spender.client, call, idempotencyKey)
  let { token } = spender
  let terms: Terms | undefined
  let ofAccount: readonly SetLimit[] = []

  for (;;) {
    // 2. Load what the payment depends on. If another request is asking the host about it, wait for that decision. If
    // its owner can no longer confirm it, decline it.
    let snapshot = await snapshotOf(deps, request, token, ofAccount, spender.preload)
    const { reserved, isAsked } = snapshot
    if (reserved !== undefined) {
      if (isAsked) {
        if (await waitForDecision(deps, reserved, endsAt)) continue
        return askedAlready
      }
      const isOfOther = waitsUnderOther(reserved, token.grantId)
      if (isOfOther && (await declineIfGrantEnded(deps, reserved))) continue
    }

    // 3. Determine the terms of a new payment, and get the limits of its account.
    if (snapshot.isNew && terms === undefined) {
      const agreed = await termsOf(deps, request)
      if (!agreed.ok) return agreed
      const { walletAddress } = input
      ofAccount = await limitsOfAccount(
        deps,
        { ...agreed.value.account, walletAddress },
        request.receivedAt,
      )
      snapshot = await withLimits(deps, token, snapshot, ofAccount)
      terms = agreed.value.terms
      // The host may have taken long for the price and the limits. It now gets its whole time to decide, and this
      // request its whole time for races.
      snapshot = { ...snapshot, now: context.clock.now() }
      endsAt = newEnd()
    }

    // 4. Decide: create or reserve the payment, if the grant is as it was introspected.
    const attempt = { request: snapshot.request, token, snapshot, terms }
    const answer = await call.run(paymentWrite(deps, attempt), (read) =>
      decideRepeated(deps, attempt, read),
    )
    if (!answer.ok && answer.refusal !== 'outdated') return answer
    if (!answer.ok) {
      // This also loads what the payment depends on, if there is a preload.
      const renewed = await spender.renew()
      if (!renewed.ok) return renewed
      if (context.pacing.elapsedMs() > endsAt) throw new ContentionError()
      token = renewed.value
      continue
    }
    const { payment, spent } = answer
    deps.seenBudgets.see(payment.id, budgetKeysOf(payment))
    if (isCreated(payment)) return answerWith(payment, spent)

    // 5. Ask the host about the reserved payment, and create or decline it, or let it wait for its owner.
    const settled = await settleReserved(deps, mayPay, payment, token)
    if (settled.ok) return answerWith(settled.payment, spent)
    if (settled.refusal !== 'outdated') return settled
  }
}

function answerWith(payment: OutgoingPayment, spent: SpentAmounts | undefined): PaymentAnswer {
  return spent === undefined
    ? { ok: true, payment: asCreated(payment) }
    : { ok: true, payment, spent }
}

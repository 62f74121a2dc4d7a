import type { SpentAmounts } from '../core/budget/record.js'
import { ok, type Refused, type Result, refused } from '../core/decision.js'
import type { ConditionsRefusal, LimitsRefusal } from '../core/limits.js'
import type { AllOrNone } from '../core/outgoing-payment/authority.js'
import { waitsUnderOther } from '../core/outgoing-payment/confirmation.js'
import type { CreationPolicy, Terms } from '../core/outgoing-payment/create.js'
import { asCreated, isCreated, type OutgoingPayment } from '../core/outgoing-payment/record.js'
import type { SetLimit } from '../core/spending-limits.js'
import type { ActiveToken, Introspect, TokenRefusal } from '../ports/host.js'
import { budgetKeysOf, limitsOfAccount } from './budgets.js'
import { newCall, type ServiceContext } from './context.js'
import {
  type CreationRefused,
  decideRepeated,
  paymentWrite,
} from './create-outgoing-payment/decision.js'
import type {
  Payer,
  PayingServer,
  PaymentCreationPorts,
} from './create-outgoing-payment/paying-server.js'
import { identify, type PaymentCall, type PaymentInput } from './create-outgoing-payment/request.js'
import { loadedForPayment, snapshotOf, withLimits } from './create-outgoing-payment/snapshot.js'
import { termsOf } from './create-outgoing-payment/terms.js'
import type { IntrospectAndLoad } from './introspection.js'
import type { LoadedWithGrant } from './loaded-with-grant.js'
import type { PricingRefused } from './quote.js'
import { declineIfGrantEnded, settleReserved, waitForDecision } from './reserved-payment.js'
import type { Replayed, SignedCall } from './signed-call.js'
import { ContentionError } from './store-errors.js'

interface Spender {
  readonly client: string
  readonly token: ActiveToken
  /** Introspects the token again, because the grant may have changed when a commit lost a race. */
  renew(): Promise<Result<ActiveToken, Refused<TokenRefusal>>>
  /** What each introspection loads with the grant. Default: nothing. */
  readonly loadedWithGrant?: LoadedWithGrant | undefined
}

/** The owner of the account, who needs no token. */
type Owner = Exclude<AllOrNone<Spender>, Spender>

const owner: Owner = {}

/**
 * A payment, and the amounts spent under the token in the windows that are open when its request arrives. A repeat with
 * the same signature gets the payment as it was created, without these amounts.
 */
export interface PaymentAnswer {
  readonly ok: true
  readonly payment: OutgoingPayment
  readonly spent?: SpentAmounts
  /** Whether this request created it. */
  readonly changed: boolean
}

/** Another request waits for the host's decision about the same payment: a repeat gets it. */
const askedAlready = refused('busy', 'an earlier request for the payment is still undecided')

type PaymentCreationRefused =
  | typeof askedAlready
  | Refused<TokenRefusal>
  | PricingRefused
  | CreationRefused

/** The key of an order names a payment that was removed. */
type Removed = Refused<'payment_unknown'>

type Paid = PaymentAnswer | PaymentCreationRefused | Removed | Replayed

/** Only the key of an order outlives its payment. */
type PaidUnderGrant = Exclude<Paid, Removed>

/** Why a grant does not allow a payment. */
type RefusalByGrant = 'grant_ended' | LimitsRefusal | ConditionsRefusal

/** An order has neither a signature nor a token, and no grant that could refuse it. */
type PaidOrder =
  | Exclude<Paid, Replayed | Refused<TokenRefusal> | CreationRefused>
  | Refused<Exclude<CreationRefused['refusal'], RefusalByGrant>>

/** Creates an outgoing payment, or returns the one that an identical earlier request created. */
export type PaymentCreation = ReturnType<typeof createPaymentCreation>

/**
 * Returns the operation that creates an outgoing payment, or answers with the one that an identical earlier request
 * created. One commit contains the payment, its budget, its event, the replay record and the guard on the grant.
 *
 * If the host decides about payments, this commit reserves the payment: nobody sees it. Then the host is asked, and a
 * second commit creates the payment or declines it. At most one request asks at a time; the others wait for its
 * decision. See docs/holds.md.
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
    /**
     * Prepares the payment of a client before its token is known. `introspect` loads in the same call of the store what
     * a payment by a quote needs, so that such a payment needs one load.
     */
    async prepare(input: PaymentInput, introspect: IntrospectAndLoad) {
      const loadedWithGrant = await loadedForPayment(deps, input)
      return {
        input,
        introspect: ((query) => introspect(query, loadedWithGrant)) satisfies Introspect,
        create: (
          spender: Omit<Spender, 'loadedWithGrant'>,
          call: SignedCall,
          idempotencyKey?: string,
        ) => pay(deps, input, { loadedWithGrant, ...spender }, call, idempotencyKey),
      }
    },
    /**
     * Creates a payment that the owner of the account orders: without a client, a grant or a signature.
     *
     * @param idempotencyKey absent for a payment by a quote.
     */
    order: (input: PaymentInput, idempotencyKey: string | undefined) =>
      pay(deps, input, owner, { ...newCall(context), run: context.run }, idempotencyKey),
  }
}

function pay(
  deps: PayingServer,
  input: PaymentInput,
  spender: Spender,
  call: PaymentCall,
  idempotencyKey: string | undefined,
): Promise<PaidUnderGrant>
function pay(
  deps: PayingServer,
  input: PaymentInput,
  spender: Owner,
  call: PaymentCall,
  idempotencyKey: string | undefined,
): Promise<PaidOrder>
async function pay(
  deps: PayingServer,
  input: PaymentInput,
  spender: AllOrNone<Spender>,
  call: PaymentCall,
  idempotencyKey: string | undefined,
): Promise<Paid> {
  const { context, mayPay } = deps
  const newEnd = () => context.pacing.elapsedMs() + context.storeTimeoutMs
  let endsAt = newEnd()

  // 1. Identify the payment, and determine what makes another request a repeat of this one.
  const request = await identify(context, input, spender.client, call, idempotencyKey)
  let payer: Payer = spender
  const isAccountLimited = payer.token !== undefined || input.countsInAccountLimits === true
  let terms: Terms | undefined
  let ofAccount: readonly SetLimit[] = []

  for (;;) {
    // 2. Load what the payment depends on. If another request is asking the host about it, wait for that decision. If
    // its owner can no longer confirm it, decline it.
    let snapshot = await snapshotOf(deps, request, payer, ofAccount, spender.loadedWithGrant)
    const { reserved, isAsked, removed } = snapshot
    if (removed !== undefined) return removed
    if (reserved !== undefined) {
      if (isAsked) {
        if (await waitForDecision(deps, reserved, endsAt)) continue
        return askedAlready
      }
      const isOfOther = payer.token && waitsUnderOther(reserved, payer.token.grantId)
      if (isOfOther && (await declineIfGrantEnded(deps, reserved))) continue
    }

    // 3. Determine the terms of a new payment, and get the limits of its account.
    if (snapshot.isNew && terms === undefined) {
      const agreed = await termsOf(deps, request, payer.client)
      if (!agreed.ok) return agreed
      if (isAccountLimited) {
        const { assetCode, assetScale } = agreed.value.account
        const account = { walletAddress: input.walletAddress, assetCode, assetScale }
        ofAccount = await limitsOfAccount(deps, account, request.receivedAt)
        snapshot = await withLimits(deps, payer, snapshot, ofAccount)
      }
      terms = agreed.value.terms
      // The host may have taken long for the price and the limits. It now gets its whole time to decide, and this
      // request its whole time for races.
      snapshot = { ...snapshot, now: context.clock.now() }
      endsAt = newEnd()
    }

    // 4. Decide: create or reserve the payment, if the grant is as it was introspected.
    const attempt = { request: snapshot.request, payer, snapshot, terms }
    const answer = await call.run(paymentWrite(deps, attempt), (read) =>
      decideRepeated(deps, attempt, read),
    )
    if (!answer.ok && answer.refusal !== 'outdated') return answer
    if (!answer.ok) {
      // This may also load what the payment depends on.
      const renewed = await renew(spender)
      if (!renewed.ok) return renewed
      if (context.pacing.elapsedMs() > endsAt) throw new ContentionError()
      payer = renewed.value
      continue
    }
    const { payment, spent } = answer
    deps.seenBudgets.see(payment.id, budgetKeysOf(payment))
    if (isCreated(payment)) {
      return answerWith(payment, spent, payment.commandId === request.commandId)
    }

    // 5. Ask the host about the reserved payment, and create or decline it, or let it wait for its owner.
    const settled = await settleReserved(deps, mayPay, payment, payer.token ?? { order: input })
    if (settled.ok) return answerWith(settled.payment, spent, true)
    if (settled.refusal !== 'outdated') return settled
  }
}

/** Returns who pays, with the token as it is now. The owner has none. */
async function renew(spender: AllOrNone<Spender>): Promise<Result<Payer, Refused<TokenRefusal>>> {
  if (spender.token === undefined) return ok({})
  const renewed = await spender.renew()
  return renewed.ok ? ok({ client: spender.client, token: renewed.value }) : renewed
}

function answerWith(
  payment: OutgoingPayment,
  spent: SpentAmounts | undefined,
  changed: boolean,
): PaymentAnswer {
  return spent === undefined
    ? { ok: true, payment: asCreated(payment), changed }
    : { ok: true, payment, spent, changed }
}

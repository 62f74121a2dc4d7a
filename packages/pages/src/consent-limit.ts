import type { Asset, InteractionView, SpendingLimit } from 'open-payments-server'
import { type Html, html } from './html.js'
import { type LimitProblem, numberField } from './limits.js'
import { type Locale, say } from './locale.js'
import { accountsFor, isSameUrl, type OwnedAccount } from './owned-account.js'
import {
  debitedAsset,
  newLimitFields,
  periodField,
  periods,
  typedLimit,
  withTypedLimit,
} from './owner-limits.js'

type Requested = Pick<InteractionView, 'access' | 'needAccount' | 'totals'>

/** Whether a request would let the app pay any amount. */
export function paysAnyAmount({ totals }: Pick<InteractionView, 'totals'>): boolean {
  return totals.some(({ debitAmount, receiveAmount }) => !debitAmount && !receiveAmount)
}

/** Returns the fields by which the owner limits what a request leaves open. */
export function limitForAnyAmount(
  view: Requested,
  { locale, accounts, given, problem }: LimitForm,
): Html {
  const typed = given === undefined ? undefined : typedLimit(given)
  const assets = assetsOf(view, accounts)
  const codes = [...new Set(assets.map(({ assetCode }) => assetCode))]
  const asset = new Intl.ListFormat(locale.tag, { type: 'disjunction' }).format(codes)
  const ids = newLimitFields
  const most = { field: ids.most, name: 'most', typed: typed?.most, problem }
  const payments = { field: ids.payments, name: 'payments', typed: typed?.payments, problem }
  const everyMonth = { interval: periods.everyMonth, most: '', payments: '' }
  return html`<fieldset><legend>${say(locale, 'limitSet')}</legend>
    ${assets.length > 0 && numberField({ ...most, label: say(locale, 'limitAmount', { asset }) }, locale)}
    ${numberField({ ...payments, label: say(locale, 'limitPayments'), mode: 'numeric' }, locale)}
    ${periodField(ids.interval, [], typed ?? everyMonth, locale)}
    <p class="quiet small">${say(locale, 'limitSetHint')}</p></fieldset>`
}

interface LimitForm {
  readonly locale: Locale
  readonly accounts: readonly OwnedAccount[]
  readonly given: URLSearchParams | undefined
  readonly problem: LimitProblem | undefined
}

/** Returns the limits that the owner typed, for the condition `limits`: none if the fields are empty. */
export function limitsIn(
  view: Requested,
  fields: URLSearchParams,
  {
    locale,
    accounts,
    account,
  }: Pick<LimitForm, 'locale' | 'accounts'> & {
    /** The account that the owner chose, if there is a choice. */
    readonly account: string | undefined
  },
):
  | { readonly ok: true; readonly limits: readonly SpendingLimit[] }
  | { readonly ok: false; readonly problem: LimitProblem | 'stale' } {
  const typed = typedLimit(fields)
  if (!paysAnyAmount(view) || (typed.most === '' && typed.payments === '')) {
    return { ok: true, limits: [] }
  }
  const read = withTypedLimit([], typed, assetOf(view, accounts, account), locale)
  if (read.ok) return { ok: true, limits: read.value }
  return { ok: false, problem: read.problem === 'unchanged' ? 'stale' : read.problem }
}

/** The assets in which the app could pay, by the account that the owner chooses. */
function assetsOf(view: Requested, accounts: readonly OwnedAccount[]): readonly Asset[] {
  const { needAccount } = view
  const chosen =
    needAccount.length === 0
      ? [undefined]
      : accountsFor(needAccount, accounts).map(({ url }) => url)
  return chosen.flatMap((account) => assetOf(view, accounts, account) ?? [])
}

function assetOf(
  { access }: Requested,
  accounts: readonly OwnedAccount[],
  account: string | undefined,
): Asset | undefined {
  const chosen = accounts.find(({ url }) => isSameUrl(url, account))?.url
  const items = access.map((item) =>
    item.identifier === undefined && chosen !== undefined ? { ...item, identifier: chosen } : item,
  )
  return debitedAsset({ access: items }, accounts)
}

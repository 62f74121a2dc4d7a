/**
 * The pages of a wallet for the owners of its accounts: consent, connected apps, login and short answers.
 *
 * @module open-payments-pages
 */

export type { DescriptionOptions } from './access.js'
export {
  type AccountLimitSettings,
  type AccountLimitsOptions,
  accountLimitsScreen,
  type LimitedAccount,
} from './account-limits.js'
export { amountHtml, formatAmount, readAmount } from './amounts.js'
export type { OwnKey } from './app-name.js'
export { type ConfirmationOptions, confirmationScreen } from './confirmation.js'
export { type ConnectedAppOptions, connectedAppScreen } from './connected-app.js'
export {
  type AppOptions,
  type ConnectedApp,
  type ConnectedAppsOptions,
  connectedAppHtml,
  connectedAppsScreen,
} from './connected-apps.js'
export {
  type ConsentOptions,
  type ConsentSection,
  type ConsentSections,
  consentScreen,
  consentSections,
} from './consent.js'
export { type EndedAppsOptions, endedAppsScreen } from './ended-apps.js'
export {
  type BrowserTokens,
  browserTokens,
  type FormTokens,
  fieldsOf,
  formTokens,
  isForeignForm,
} from './forms.js'
export { type Html, type HtmlValue, html, trustedHtml } from './html.js'
export { icon } from './icon.js'
export {
  type KeyConflict,
  type KeyProblem,
  type KeysOptions,
  keysScreen,
  type ListedKey,
  type OwnedKey,
  type OwnerKeys,
} from './keys.js'
export {
  canArrive,
  type Design,
  type NavigationLink,
  type PageOptions,
  page,
  type Screen,
  type SignedIn,
  seeOther,
} from './layout.js'
export { type LimitChange, type LimitCheckOptions, limitCheckScreen } from './limit-check.js'
export type { LimitProblem } from './limits.js'
export {
  formatDay,
  formatInstant,
  isolated,
  type Languages,
  type Locale,
  type LocaleSettings,
  languages,
  localeFor,
  say,
} from './locale.js'
export { alertOf, type LoginOptions, loginScreen, type NoticeName, noticeScreen } from './notice.js'
export type { Owner, PageScreens, PagesOptions } from './options.js'
export type { OwnedAccount } from './owned-account.js'
export { createPages, type Pages } from './pages.js'
export type { NamedReceiver, Receivers } from './receivers.js'
export {
  type SendCheckOptions,
  type SendOptions,
  type SendProblem,
  type SendSettings,
  sendCheckScreen,
  sendScreen,
} from './send.js'
export type { PluralCategory, TextKey, Texts } from './texts.js'

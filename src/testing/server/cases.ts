import { consentCases } from './consent.js'
import type { ServerCaseDefinition } from './definition.js'
import { discoveryCases } from './discovery.js'
import { grantCases } from './grant.js'
import { incomingPaymentCases } from './incoming-payment.js'
import { listCases } from './lists.js'
import { outgoingPaymentCases } from './outgoing-payment.js'
import { signatureCases } from './signatures.js'
import { tokenCases } from './token.js'
import { walletAddressCases } from './wallet-address.js'

/** The cases that need no owner. */
export const unattendedCases: readonly ServerCaseDefinition[] = [
  ...walletAddressCases,
  ...discoveryCases,
  ...signatureCases,
  ...grantCases,
  ...tokenCases,
  ...incomingPaymentCases,
  ...listCases,
]

/** All cases, in the order in which a server that is being written needs them. */
export const serverCases: readonly ServerCaseDefinition[] = [
  ...unattendedCases,
  ...consentCases,
  ...outgoingPaymentCases,
]

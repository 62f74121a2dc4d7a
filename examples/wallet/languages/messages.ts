import type { AccessAction, AccessType } from 'open-payments-server/core'

export type Unit = 'year' | 'month' | 'week' | 'day' | 'hour' | 'minute' | 'second'

/** What the pages say in one language. Every argument is text, which the pages escape. */
export interface Messages {
  readonly direction: 'ltr' | 'rtl'
  /** With the space after it. */
  readonly comma: string
  readonly actions: Readonly<Record<AccessType, Readonly<Partial<Record<AccessAction, string>>>>>
  readonly subject: (id: string) => string
  readonly limits: {
    readonly onlyFor: (account: string) => string
    readonly onlyTo: (receiver: string) => string
    readonly debited: (amount: string, period: string) => string
    readonly arrives: (amount: string, period: string) => string
    readonly unlimited: string
    readonly atTheseTimes: (period: string) => string
    /** The account of a total whose account the owner chooses. */
    readonly chosen: string
    readonly total: (items: string, account: string, limit: string) => string
  }
  readonly periods: {
    /** The period of a limit without an interval. */
    readonly inAll: string
    readonly every: Readonly<Record<Unit, string>>
    /** @param duration such as `2 weeks`. */
    readonly everyDuration: (duration: string) => string
    readonly times: (count: number) => string
    readonly never: string
    readonly only: (from: string, until: string) => string
    readonly first: (from: string, until: string) => string
    readonly last: (from: string, until: string) => string
  }
  readonly consent: {
    readonly title: string
    readonly signedIn: (owner: string) => string
    readonly demo: string
    /** @param client the name and wallet address of the app. */
    readonly asks: (client: string) => string
    /** The heading of one of several tokens. */
    readonly token: (label: string) => string
    /** The label of the accounts among which the owner chooses. */
    readonly account: string
    readonly noAccount: string
    /** Why an account cannot be chosen. */
    readonly misfit: (account: string, asset: string, limit: string) => string
    readonly returnsTo: (host: string) => string
    readonly returns: string
    readonly approve: string
    readonly deny: string
  }
  readonly apps: {
    readonly title: string
    readonly none: string
    readonly may: string
    readonly since: (date: string) => string
    readonly revoke: string
    /** The accessible name of the button for one app. */
    readonly revokeApp: (client: string) => string
    readonly revoked: string
    readonly pause: string
    readonly resume: string
    readonly paused: string
    readonly remove: string
    readonly lower: string
    readonly newLimit: (assetCode: string) => string
    readonly changed: string
  }
  readonly keys: {
    readonly title: string
    readonly signIn: string
    readonly purpose: string
    readonly none: string
    readonly kid: (kid: string) => string
    readonly thumbprint: (beginning: string) => string
    readonly since: (date: string) => string
    readonly revoke: string
    /** The accessible name of the button for one key. */
    readonly revokeKey: (name: string) => string
    readonly addTitle: string
    readonly account: string
    readonly name: string
    readonly key: string
    readonly newKid: string
    readonly add: string
    /** To make a key in the browser. */
    readonly make: string
    readonly made: string
    readonly unsupported: string
    readonly added: string
    readonly revoked: string
    /** The heading of a problem. */
    readonly refused: string
    readonly problems: Readonly<Record<'name' | 'known' | 'kidTaken' | 'full', string>>
  }
  /** Short answers, each with a title. */
  readonly notices: Readonly<
    Record<
      | 'expired'
      | 'answered'
      | 'done'
      | 'undecided'
      | 'signedOut'
      | 'notYours'
      | 'unknown'
      | 'notApproved'
      | 'notNarrower'
      | 'failed'
      | 'wrongMethod',
      readonly [title: string, text: string]
    >
  >
}

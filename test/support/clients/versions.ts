import * as newest from '@interledger/open-payments'
import * as client700 from 'open-payments-client-7.0.0'
import * as client711 from 'open-payments-client-7.1.1'

/** What the tests use of the published TypeScript client. Its types are those of the newest version. */
export type ClientModule = Pick<
  typeof newest,
  | 'createAuthenticatedClient'
  | 'createUnauthenticatedClient'
  | 'isPendingGrant'
  | 'isFinalizedGrant'
>

/** The published TypeScript client by version: the versions that are in use, each installed under its own name. */
export const versions: Readonly<Record<'7.0.0' | '7.1.1' | '7.4.0', ClientModule>> = {
  '7.0.0': client700 as unknown as ClientModule,
  '7.1.1': client711 as unknown as ClientModule,
  '7.4.0': newest,
}

export type Version = keyof typeof versions

/** The packages that the versions are installed as. */
export const packages: Readonly<Record<Version, string>> = {
  '7.0.0': 'open-payments-client-7.0.0',
  '7.1.1': 'open-payments-client-7.1.1',
  '7.4.0': '@interledger/open-payments',
}

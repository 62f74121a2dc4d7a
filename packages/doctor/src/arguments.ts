import { readFileSync } from 'node:fs'
import {
  type Arguments,
  type Program,
  type ProgramOptions,
  timeoutOf,
  UsageError,
  walletAddressUrl,
} from 'open-payments-programs'

/** The parsed command line. */
export interface DoctorOptions {
  readonly walletAddress: string
  /** The wallet address of a client, with the content of its key file. Default: a throwaway key. */
  readonly client: { readonly walletAddress: string; readonly privateKey: string } | undefined
  /** Whether hosts may have addresses that are not public. */
  readonly allowPrivate: boolean
  readonly timeoutMs: number
  readonly json: boolean
}

const usage = `Usage: open-payments-doctor [options] <wallet address>

Checks a deployed wallet from outside, as a client sees it. The wallet address is a URL, such as
https://wallet.example/alice, or has the form '$wallet.example/alice'.

  --client <wallet address>  the wallet address of a client, for the checks of the consent page
  --key <file>               its Ed25519 private key: PEM, a JWK, or a key file of open-payments-cli;
                             the key must be in {client}/jwks.json
  --allow-private            allow hosts whose addresses are not public, such as localhost
  --timeout <seconds>        how long a server may take to respond; 10 by default
  --json                     print the report as JSON
  -h, --help                 print this text
  --version                  print the version

Exit code: 0 without problems, 1 with problems, 2 if the arguments are invalid or the wallet address is unreachable.
`

export const doctor = {
  name: 'open-payments-doctor',
  usage,
  manifest: new URL('../package.json', import.meta.url),
  options: {
    client: { type: 'string' },
    key: { type: 'string' },
    'allow-private': { type: 'boolean' },
    timeout: { type: 'string' },
    json: { type: 'boolean' },
  },
  othersMax: 1,
} as const satisfies Program<ProgramOptions>

/** Throws a `UsageError` for values that are not valid. */
export function doctorOptions({
  values,
  positionals: [walletAddress],
}: Arguments<typeof doctor.options>): DoctorOptions {
  if (walletAddress === undefined) throw new UsageError('a wallet address is required')
  const { client, key } = values
  if ((client === undefined) !== (key === undefined)) {
    throw new UsageError('--client and --key must be given together')
  }
  return {
    walletAddress: walletAddressUrl(walletAddress),
    client:
      client === undefined || key === undefined
        ? undefined
        : { walletAddress: walletAddressUrl(client), privateKey: contentOf(key) },
    allowPrivate: values['allow-private'] === true,
    timeoutMs: timeoutOf(values.timeout),
    json: values.json === true,
  }
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(`the key cannot be read: ${(error as Error).message}`)
  }
}

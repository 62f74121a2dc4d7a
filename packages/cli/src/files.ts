import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { IssuedGrant } from 'open-payments-client'
import { pick, privateKeyIn, UsageError, walletAddressUrl } from 'open-payments-programs'
import { type KeyPair, keyPairOf, throwAwayKey } from 'open-payments-server-testing'

/** The key of a client, from a file. */
export interface ClientKey {
  readonly file: string
  /** The wallet address of the client, if it has one. Otherwise its requests contain the public key. */
  readonly walletAddress: string | undefined
  readonly pair: KeyPair
  /** Whether the file has the form that this program writes, and may be replaced. */
  readonly isOwn: boolean
  /** Whether users other than the owner of the file may read it. */
  readonly isExposed: boolean
  /** Whether this run has created the key. */
  readonly isNew: boolean
}

/**
 * Returns the file of the key: the option, `OPEN_PAYMENTS_KEY`, or `open-payments/key.json` in the folder for settings.
 */
export function keyFile(
  option: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): string {
  const named = option ?? env['OPEN_PAYMENTS_KEY']
  if (named !== undefined && named !== '') return resolve(named)
  const folder = env['XDG_CONFIG_HOME'] || env['APPDATA'] || join(homedir(), '.config')
  return join(folder, 'open-payments', 'key.json')
}

/**
 * Reads a key file: JSON with the members that the published client takes as options (`walletAddressUrl`, `keyId` and
 * `privateKey` in PEM), or a private key in PEM or as a JWK. Returns `undefined` if there is no such file. Throws a
 * `UsageError` for other content.
 *
 * @param given what the command line says instead: a PEM file has neither wallet address nor key id.
 */
export function readKey(
  file: string,
  given: { readonly client?: string | undefined; readonly keyId?: string | undefined } = {},
): ClientKey | undefined {
  const text = textOf(file)
  if (text === undefined) return undefined
  const isJson = text.trimStart().startsWith('{')
  const content = isJson ? jsonOf(text, file) : { privateKey: text }
  const pem = pick(content, 'privateKey')
  const named = given.client ?? pick(content, 'walletAddressUrl')
  const keyId = given.keyId ?? pick(content, 'keyId') ?? pick(content, 'kid')
  const privateKey = privateKeyIn(pem ?? content)
  if (privateKey === undefined) {
    throw new UsageError(`${file} contains no Ed25519 private key in PEM or as a JWK`)
  }
  if (typeof keyId !== 'string') {
    throw new UsageError(`--key-id is required, because ${file} does not name the key`)
  }
  return {
    file,
    walletAddress: typeof named === 'string' ? walletAddressUrl(named) : undefined,
    pair: keyPairOf(privateKey, keyId),
    isOwn: isJson && pem !== undefined,
    isExposed: process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0,
    isNew: false,
  }
}

/** Writes a new key, or an existing one with another wallet address, readable only by the owner of the file. */
export function writeKey(
  file: string,
  walletAddress: string | undefined,
  pair: KeyPair = { ...throwAwayKey(), kid: `cli-${randomBytes(4).toString('hex')}` },
): ClientKey {
  const content = {
    ...(walletAddress !== undefined && { walletAddressUrl: walletAddress }),
    keyId: pair.kid,
    privateKey: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }),
  }
  writePrivately(file, content)
  return { file, walletAddress, pair, isOwn: true, isExposed: false, isNew: true }
}

/** Removes a key file, unless another run of this program has replaced it. */
export function removeKey({ file, pair }: ClientKey): void {
  if (readKey(file)?.pair.thumbprint === pair.thumbprint) rmSync(file)
}

/** A grant that is kept in a file next to the key. */
export interface KeptGrant extends IssuedGrant {
  readonly id: string
  /** An instant of RFC 3339. */
  readonly createdAt: string
  readonly walletAddress: string
  /** The thumbprint of the key that the token is bound to. */
  readonly key: string
  /** The only quote that the grant is for. */
  readonly quote?: string
}

const idForm = /^[\w-]{1,40}$/

function folderOf(key: ClientKey): string {
  return join(dirname(key.file), 'grants')
}

export function keepGrant(key: ClientKey, grant: KeptGrant): void {
  writePrivately(join(folderOf(key), `${grant.id}.json`), grant)
}

export function removeGrant(key: ClientKey, { id }: Pick<KeptGrant, 'id'>): void {
  rmSync(join(folderOf(key), `${id}.json`), { force: true })
}

/** Returns the grants of this key, the latest first. */
export function keptGrants(key: ClientKey): readonly KeptGrant[] {
  return namesIn(folderOf(key))
    .map((name) => name.replace(/\.json$/, ''))
    .filter((name) => idForm.test(name))
    .flatMap((name) => {
      const file = join(folderOf(key), `${name}.json`)
      const text = textOf(file)
      return text === undefined ? [] : [jsonOf(text, file) as KeptGrant]
    })
    .filter((grant) => grant.key === key.pair.thumbprint)
    .sort((one, other) => (one.createdAt < other.createdAt ? 1 : -1))
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    throw new UsageError(`${file} cannot be read: ${message}`)
  }
}

function jsonOf(text: string, file: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new UsageError(`${file} is not JSON`)
  }
}

/** Replaces the file at once, so that no reader sees half of it. */
function writePrivately(file: string, content: object): void {
  const temporary = `${file}.${randomBytes(6).toString('hex')}`
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    writeFileSync(temporary, `${JSON.stringify(content, undefined, 2)}\n`, {
      mode: 0o600,
      flag: 'wx',
    })
    chmodSync(temporary, 0o600)
    renameSync(temporary, file)
  } catch (error) {
    throw new UsageError(`${file} cannot be written: ${(error as Error).message}`)
  }
}

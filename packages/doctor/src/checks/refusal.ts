import { createHash } from 'node:crypto'
import {
  pick,
  responded,
  type SignatureChanges,
  type WireAnswer,
  type WireRequest,
} from 'open-payments-programs'
import type { Context } from '../check.js'
import type { Session } from '../conformance/session.js'
import { covered, without } from '../conformance/signatures.js'
import { sentOnce } from '../remedies.js'
import type { Problem } from '../report.js'

/** A request of the client, with other signatures than ordinary ones. */
type Attempt = (sign: Exclude<WireRequest['sign'], undefined>) => Promise<WireAnswer>

/**
 * Finds out why a correctly signed request was refused. Each further request has a signature that omits or replaces one
 * component: if the server accepts the request, the signature shows what the server received.
 */
export async function changedInTransit(
  session: Session,
  attempt: Attempt,
  isAccepted: (answer: WireAnswer) => boolean,
): Promise<Problem | undefined> {
  for (const name of ['Content-Length', 'Content-Type']) {
    if (isAccepted(await attempt(without(`"${name.toLowerCase()}"`)))) {
      return unlike(`the header ${name} does not arrive unchanged at ${await originOf(session)}`, [
        name === 'Content-Type'
          ? '# Pass Content-Type on as application/json, without a charset.'
          : 'proxy_request_buffering on;  # nginx: passes Content-Length on; or let the CDN not send chunks',
      ])
    }
  }
  return lostAtResources(session)
}

/** Compares what the resource server says about requests without a token. */
async function lostAtResources(session: Session): Promise<Problem | undefined> {
  const search = new URLSearchParams({ 'wallet-address': session.walletAddress })
  const list = `${await session.resource('/incoming-payments')}?${search}`
  const get = (sign?: SignatureChanges, headers: WireRequest['headers'] = []) =>
    session.send({ method: 'GET', url: list, sign: sign ?? {}, headers })
  const unsigned = await session.send({ method: 'GET', url: list, sign: false })
  // Servers that say the same about every request without a token reveal nothing.
  const isAboutSignature = /sign/i.test(JSON.stringify(pick(unsigned.body, 'error') ?? ''))
  if (!isAboutSignature) return undefined
  const at = await originOf(session)
  const isSame = (answer: WireAnswer) => errorOf(answer) === errorOf(unsigned)
  if (isSame(await get())) {
    return unlike(`the headers Signature and Signature-Input do not arrive unchanged at ${at}`, [
      '# Pass the headers Signature and Signature-Input on, and add no signature of the proxy.',
    ])
  }
  const digest = `sha-512=:${createHash('sha512').digest('base64')}:`
  const components = ['"@method"', '"@target-uri"', '"content-digest"']
  if (isSame(await get({ components }, [['Content-Digest', digest]]))) {
    return unlike(`the header Content-Digest does not arrive unchanged at ${at}`, [
      '# Pass the header Content-Digest on.',
    ])
  }
  if (isSame(await session.requestIncoming(undefined))) {
    return unlike(`the body does not arrive unchanged at ${at}`, [
      '# Let no proxy, firewall or middleware parse the body and serialize it again.',
    ])
  }
  return undefined
}

function unlike(what: string, fix: readonly string[]): Problem {
  return {
    what,
    why: 'Signatures cover it, so the wallet refuses every request. A proxy or middleware removes or changes it.',
    fix,
    cause: 'transit',
  }
}

/** The origin of the resource server, where the requests were sent. */
async function originOf(session: Session): Promise<string> {
  return new URL((await session.wallet()).resourceServer).origin
}

/** What a refusal says, without the details of the single request. */
function errorOf({ status, body }: WireAnswer): string {
  const error = pick(body, 'error')
  return JSON.stringify([status, pick(error, 'code') ?? error, pick(error, 'description')])
}

/** Returns the first of these URLs for which the server accepts a signature. */
export async function verifiedTarget(
  urls: readonly string[],
  attempt: Attempt,
  isAccepted: (answer: WireAnswer) => boolean,
): Promise<string | undefined> {
  for (const each of urls) {
    if (isAccepted(await attempt({ override: { '"@target-uri"': each } }))) return each
  }
  return undefined
}

/** The URLs that a server may take for its own behind a proxy: another scheme, path or slash at the end. */
export function variantsOf(url: string): readonly string[] {
  const { host, pathname } = new URL(url)
  const segments = pathname.split('/').filter((segment) => segment !== '')
  const paths = segments.map((_, index) => `/${segments.slice(index).join('/')}`).concat('/')
  const all = ['https:', 'http:'].flatMap((scheme) =>
    paths.flatMap((path) => {
      const one = `${scheme}//${host}${path}`
      return path === '/' ? [one] : [one, `${one}/`]
    }),
  )
  return all.filter((each) => each !== url)
}

const attemptsAtToken = 4

/** Finds out why a token that was just issued was refused. */
export async function refusedToken(
  session: Session,
  refused: WireAnswer,
): Promise<Problem | undefined> {
  const token = await session.sharedToken()
  let failed = 0
  for (let i = 0; i < attemptsAtToken; i++) {
    if ((await session.requestIncoming(token)).status !== 201) failed++
  }
  if (failed < attemptsAtToken)
    return unknownToken(`each token`, `: ${failed} of ${attemptsAtToken} requests were refused`)
  const without = await session.requestIncoming(undefined)
  if (
    errorOf(await session.requestIncoming(token, {}, { components: covered })) === errorOf(without)
  ) {
    return {
      what: `the header Authorization does not arrive at ${await originOf(session)}`,
      why: 'The resource server responds to a valid token as to a request without one. A proxy removes the header.',
      fix: [
        'proxy_set_header Authorization $http_authorization;  # nginx',
        'CGIPassAuth On  # Apache',
      ],
      cause: 'authorization',
    }
  }
  const unknown = await session.requestIncoming('unknown-0123456789abcdef')
  return errorOf(unknown) === errorOf(refused) ? unknownToken('the tokens', '') : undefined
}

function unknownToken(which: string, more: string): Problem {
  return {
    what: `the resource server does not know ${which} that the authorization server has issued${more}`,
    why: 'The processes of the wallet do not share a store, the database hides records, or the resource server asks another authorization server.',
    fix: [
      'store: postgresStore(…) // the same database in every process; memoryStore() is for one process',
      'checkTables(pool) // says whether policies of rows hide records from the role of the servers',
      'grants: remoteGrants({ grantEndpoint: … }) // of the authorization server that the wallet address names',
    ],
    cause: 'store',
  }
}

/** Says that a request was refused as a repeat, which the doctor never sends: each one has a nonce. */
export function deliveredTwice({ request, body }: WireAnswer): Problem | undefined {
  const [code, description] = ['code', 'description'].map((name) => `${pick(body, 'error', name)}`)
  const isRepeat =
    code === 'signature_used' || /already (?:been )?used|replay/i.test(description ?? '')
  if (!isRepeat) return undefined
  return {
    what: `${request} is delivered twice: the server refuses it as a repeat of itself`,
    why: 'A signature is accepted once. A proxy, mirror or middleware sends each request again, and returns the second response.',
    fix: sentOnce,
    cause: 'twice',
  }
}

export function notVerified(answer: WireAnswer, { options }: Context): Problem {
  const { client } = options
  const isKeyRefused = client === undefined && answer.status === 400
  return {
    // Servers may refuse clients without a wallet address.
    severity: isKeyRefused ? 'note' : 'problem',
    what: isKeyRefused
      ? `${responded(answer)}: the server may not accept clients that are identified by their key alone`
      : responded(answer),
    why:
      'A correctly signed request was refused. Either the configured grantEndpoint differs from authServer, or a ' +
      'proxy changes the body or the headers Signature, Signature-Input and Content-Digest' +
      (client === undefined
        ? ', or the server does not accept clients that are identified by their key alone.'
        : ', or the server cannot fetch the key set of the client.'),
    fix: [
      'onRefusal: ({ refusal, reason }) => console.warn(refusal, reason), // says which check failed',
      ...(client === undefined
        ? ['npx open-payments-doctor --client <wallet address> --key <file> … # a published key']
        : []),
    ],
  }
}

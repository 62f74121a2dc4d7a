import { demand, show } from '../conformance/expectations.js'
import type { ServerCaseDefinition } from './definition.js'
import { demandJson, pick } from './expectations.js'
import type { Session } from './session.js'

async function discover(session: Session) {
  const { authServer: url } = await session.wallet()
  return session.send({ method: 'OPTIONS', url, sign: false })
}

export const discoveryCases: readonly ServerCaseDefinition[] = [
  {
    id: 'discovery',
    name: 'OPTIONS at the grant endpoint says what the authorization server supports',
    rule: 'RFC 9635 section 9',
    level: 'recommended',
    async check(session) {
      demandJson(await discover(session), 200)
    },
  },
  {
    id: 'discovery-endpoint',
    name: 'the discovery document, if there is one, names the URL at which it is served',
    rule: 'RFC 9635 section 9',
    async check(session) {
      const answer = await discover(session)
      const endpoint = pick(answer.body, 'grant_request_endpoint')
      if (answer.status !== 200 || answer.body === undefined) return
      const { authServer } = await session.wallet()
      demand(
        endpoint === authServer,
        `grant_request_endpoint is ${show(endpoint)}; expected ${show(authServer)}`,
      )
    },
  },
]

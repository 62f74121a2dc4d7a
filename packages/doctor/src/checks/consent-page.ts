import { ReachError, textAt } from 'open-payments-programs'
import { recognised } from '../answer.js'
import type { Check } from '../check.js'
import { outgoing } from '../conformance/grant.js'
import { requestConsent, type Session } from '../conformance/session.js'
import { allowsForm } from '../form-action.js'
import type { Problem } from '../report.js'

const redirectsMax = 5

interface Page {
  readonly url: string
  readonly response: Response
  readonly text: string
}

/** The page to which a client sends the owner. */
export const consentPageCheck: Check = {
  name: 'consent-page',
  after: ['grant-pending'],
  needsClient: true,
  async run({ session }) {
    const { answer } = await requestConsent(session, outgoing(session))
    const start = textAt(answer, 'interact', 'redirect')
    try {
      const page = await opened(session, start)
      return page === 'returned' ? undefined : problemOf(page, start, session.finishUri)
    } catch (error) {
      if (!(error instanceof ReachError) || error.failure === 'tls') throw error
      return unusable(`cannot be opened: ${error.message}`, start)
    } finally {
      const url = textAt(answer, 'continue', 'uri')
      const token = textAt(answer, 'continue', 'access_token', 'value')
      await session.send({ method: 'DELETE', url, token })
    }
  },
}

/** Opens a page like a browser without cookies, until the wallet returns it to the client without a page. */
async function opened(session: Session, start: string): Promise<Page | 'returned' | undefined> {
  let url = start
  for (let i = 0; i <= redirectsMax; i++) {
    const response = await session.fetch(url, {
      headers: { accept: 'text/html' },
      redirect: 'manual',
      signal: AbortSignal.timeout(session.requestTimeoutMs),
    })
    const text = await response.text()
    const location = response.headers.get('location')
    if (response.status < 300 || response.status >= 400 || location === null) {
      return { url, response, text }
    }
    url = new URL(location, url).href
    if (url.split('?', 1)[0] === session.finishUri) return 'returned'
  }
  return undefined
}

function problemOf(page: Page | undefined, start: string, finishUri: string): Problem | undefined {
  if (page === undefined) return unusable('redirects too often', start)
  const { response, text } = page
  const { status, headers } = response
  const request = `the consent page ${shortened(start)}`
  if ([401, 403, 429, 502, 503, 504].includes(status)) {
    const known = recognised({ request, status, headers, text, body: undefined })
    if (known !== undefined) return known
  }
  if (status !== 200) return unusable(`responded with status ${status}`, start)
  const policy = page.response.headers.get('content-security-policy')
  // The form of a login page leads back to the consent page, which has a policy of its own.
  if (isLogin(page, start)) {
    return policy === null || allowsForm(policy, page.url, start) ? loginNote : loginProblem(start)
  }
  if (policy === null) return undefined
  if (!allowsForm(policy, page.url, finishUri)) return consentProblem(page, finishUri)
  return allowsForm(policy, page.url, elsewhere) ? undefined : onwardAdvice
}

function shortened(url: string): string {
  const { origin, pathname } = new URL(url)
  return origin + pathname
}

function unusable(outcome: string, start: string): Problem {
  return {
    what: `the consent page ${shortened(start)} ${outcome}`,
    why: "Owners cannot approve anything. The doctor's request expires after a few minutes.",
    fix: [
      "consentUrl: 'https://wallet.example/consent', // createAuthorizationServer: the id is appended",
      "app.get('/consent/:id', async (request, response) => …)",
    ],
  }
}

/** Whether a redirect led to a page that is not about this interaction. */
function isLogin({ url }: Page, start: string): boolean {
  const id = new URL(start).pathname.split('/').at(-1) ?? ''
  return !new URL(url).pathname.includes(id)
}

const loginNote: Problem = {
  severity: 'note',
  what: 'only the login page in front of the consent page was checked',
  why: 'The doctor does not sign in, and the consent page has a Content-Security-Policy of its own.',
  fix: [
    '# Open the consent page while signed in, and look for form-action in its Content-Security-Policy:',
    "# it must be absent, or contain 'self' and https:, because clients redirect from one origin to another.",
  ],
}

function loginProblem(start: string): Problem {
  const { origin } = new URL(start)
  return {
    what: `the Content-Security-Policy of the login page does not let its form lead to ${origin}`,
    why: 'Browsers apply form-action to the redirect after a form too: after the login they stay on the page.',
    fix: [
      `helmet.contentSecurityPolicy({ directives: { formAction: ["'self'", '${origin}'] } }) // on this page`,
    ],
  }
}

const formActionLine =
  "helmet.contentSecurityPolicy({ directives: { formAction: [\"'self'\", 'https:'] } }) // on this page"

/** An origin to which a client may redirect on from its finish URI. */
const elsewhere = 'https://another-origin.invalid/'

const onwardAdvice: Problem = {
  severity: 'advice',
  what: "the Content-Security-Policy of the consent page allows the client's finish URI, but no redirect from there",
  why:
    'Chromium and Safari apply form-action to each redirect after a form. If the client redirects on to another origin, ' +
    'owners stay on the consent page although the grant is approved, and may approve and pay again.',
  fix: [formActionLine],
}

function consentProblem(page: Page, finishUri: string): Problem {
  return {
    // Without a form, a script may lead the browser back, which form-action does not restrict.
    severity: /<form\b/i.test(page.text) ? 'problem' : 'advice',
    what: `the Content-Security-Policy of the consent page does not let its form lead to ${new URL(finishUri).origin}`,
    why:
      'Browsers apply form-action to the redirect after a form too: after consent they stay on the page, and show an ' +
      'error only in the console. helmet() sends form-action by default.',
    fix: [formActionLine],
  }
}

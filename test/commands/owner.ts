import { signIn } from '../../examples/demo/browser.js'
import { decideAsOwner } from '../support/owner-browser.js'

// A browser with Alice in front of it: approves on the consent page, and adds the key with which the page of keys is
// filled.
const [, , url = ''] = process.argv
const { origin, pathname, searchParams } = new URL(url)
if (pathname.startsWith('/consent/')) await decideAsOwner(url)
else {
  const cookie = await signIn(origin, 'alice')
  const page = await (await fetch(url, { headers: { cookie } })).text()
  const [, token = ''] = /name="token" value="([^"]+)"/.exec(page) ?? []
  const body = new URLSearchParams({ ...Object.fromEntries(searchParams), token })
  await fetch(origin + pathname, { method: 'POST', headers: { cookie }, body })
}

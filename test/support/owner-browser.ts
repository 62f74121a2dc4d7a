import { signIn } from '../../examples/demo/browser.js'

/** A form of a page: where it leads, its fields as the page fills them, and its buttons. */
interface Form {
  readonly action: string
  readonly fields: URLSearchParams
  readonly buttons: readonly { readonly name: string; readonly value: string }[]
}

function attribute(tag: string, name: string): string | undefined {
  const [, quoted, bare] = new RegExp(`\\s${name}=(?:"([^"]*)"|([^\\s>"]+))`).exec(tag) ?? []
  return (quoted ?? bare)
    ?.replaceAll('&quot;', '"')
    .replaceAll('&#34;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
}

function formsOf(page: string): readonly Form[] {
  return [...page.matchAll(/<form\b[^>]*>[\s\S]*?<\/form>/g)].map(([text]) => {
    const fields = new URLSearchParams()
    for (const [tag] of text.matchAll(/<input\b[^>]*>/g)) {
      const [name, type] = [attribute(tag, 'name'), attribute(tag, 'type')]
      const isChosen = !/^(radio|checkbox)$/.test(type ?? '') || /\schecked\b/.test(tag)
      if (name !== undefined && isChosen) fields.append(name, attribute(tag, 'value') ?? '')
    }
    for (const [select] of text.matchAll(/<select\b[\s\S]*?<\/select>/g)) {
      const [option = ''] =
        /<option\b[^>]*\sselected\b[^>]*>/.exec(select) ?? /<option\b[^>]*>/.exec(select) ?? []
      fields.append(attribute(select, 'name') ?? '', attribute(option, 'value') ?? '')
    }
    const buttons = [...text.matchAll(/<button\b[^>]*>/g)].flatMap(([tag]) => {
      const name = attribute(tag, 'name')
      return name === undefined ? [] : [{ name, value: attribute(tag, 'value') ?? '' }]
    })
    return { action: attribute(text, 'action') ?? '', fields, buttons }
  })
}

const meanings = {
  approve: /^(approve|allow|accept|confirm|yes)/i,
  deny: /^(deny|decline|reject|no)/i,
}

/**
 * Acts as Alice: signs in, opens the consent page, submits the form that has a button for the decision, with what
 * the page fills in, and follows the redirect to the client. Resolves to the URL to which the page redirects.
 */
export async function decideAsOwner(
  url: string,
  decision: 'approve' | 'deny' = 'approve',
  follows = true,
): Promise<URL | undefined> {
  const cookie = await signIn(new URL(url).origin)
  const page = await (await fetch(url, { headers: { cookie } })).text()
  for (const { action, fields, buttons } of formsOf(page)) {
    const button = buttons.find(({ value }) => meanings[decision].test(value))
    if (button === undefined) continue
    fields.append(button.name, button.value)
    const target = new URL(action, url)
    const answered = await fetch(target, {
      method: 'POST',
      redirect: 'manual',
      headers: {
        cookie,
        origin: target.origin,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: fields,
    })
    const location = answered.headers.get('location')
    if (location === null) return undefined
    const returned = new URL(location, target)
    if (follows) await fetch(returned)
    return returned
  }
  throw new Error(`${url} has no form to ${decision}`)
}

/**
 * Whether a Content-Security-Policy lets a form of a page, or a redirect after it, lead to a URL. The header may
 * contain several policies, which all apply.
 *
 * @see Content Security Policy Level 3, section 6.4.1
 */
export function allowsForm(header: string, page: string, target: string): boolean {
  return header.split(',').every((policy) => {
    const directives = policy
      .split(';')
      .map((each) => each.split(/\s/).filter((part) => part !== ''))
    const found = directives.find(([name = '']) => name.toLowerCase() === 'form-action')
    return found === undefined || found.slice(1).some((source) => allows(source, page, target))
  })
}

function allows(source: string, page: string, target: string): boolean {
  const to = new URL(target)
  const isWeb = /^https?:$/.test(to.protocol)
  if (source === '*') return isWeb
  if (source.toLowerCase() === "'self'") return new URL(page).origin === to.origin
  if (/^[a-z][a-z\d+.-]*:$/i.test(source)) return schemeAllows(source.toLowerCase(), to.protocol)
  return isWeb && hostAllows(source, new URL(page), to)
}

function schemeAllows(scheme: string, protocol: string): boolean {
  return protocol === scheme || (scheme === 'http:' && protocol === 'https:')
}

function hostAllows(source: string, page: URL, to: URL): boolean {
  const parts = /^(?:([a-z][a-z\d+.-]*:)\/\/)?([^/:]+)(?::(\d+|\*))?(\/.*)?$/i.exec(source)
  if (parts === null) return false
  const [, scheme = page.protocol, host = '', port, path] = parts
  if (!schemeAllows(scheme.toLowerCase(), to.protocol)) return false
  const isHost = host.startsWith('*.')
    ? to.hostname.endsWith(host.slice(1).toLowerCase())
    : to.hostname === host.toLowerCase()
  const isPort = port === '*' || (port === undefined ? to.port === '' : portOf(to) === port)
  // The path is not compared after a redirect, so that it reveals nothing about the target.
  return isHost && isPort && (path === undefined || path.startsWith('/'))
}

function portOf({ port, protocol }: URL): string {
  return port !== '' ? port : protocol === 'https:' ? '443' : '80'
}

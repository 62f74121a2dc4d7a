import { type PagesOptions, seeOther } from '../src/index.js'

/** The options by which a cookie names the owner, and nobody has to type a password. */
export const ownerByCookie: Pick<PagesOptions, 'ownerOf' | 'signIn' | 'formKey'> = {
  ownerOf({ headers }) {
    const [, owner] = headers.find(([name]) => name === 'cookie') ?? []
    return owner ? { id: owner, language: 'en' } : undefined
  },
  signIn: ({ url }) => seeOther(`/login?${new URLSearchParams({ next: url })}`),
  formKey: new Uint8Array(32).fill(7),
}

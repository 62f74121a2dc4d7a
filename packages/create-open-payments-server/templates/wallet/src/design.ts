import type { Design } from 'open-payments-pages'

/** The look of the pages: set your name, logo and colours. */
export const design: Design = {
  name: 'Wallet',
  css: ':root{--accent:#0b5bd3}@media (prefers-color-scheme:dark){:root{--accent:#8ab4ff}}',
}

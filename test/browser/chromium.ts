import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { expect } from 'vitest'

/** Where `.ci/browser` has installed the tools. */
const folder = process.env['TEST_BROWSER']
const tools = createRequire(resolve(folder ?? '.', 'package.json'))

/** What the tests use of puppeteer-core, which is installed only there. */
export interface Browser {
  createBrowserContext(): Promise<BrowserContext>
  close(): Promise<void>
}
export interface BrowserContext {
  newPage(): Promise<Page>
  close(): Promise<void>
}
export interface Page {
  readonly keyboard: { press(key: string): Promise<void> }
  setDefaultTimeout(ms: number): void
  readonly accessibility: { snapshot(options: object): Promise<AccessibleNode> }
  goto(url: string): Promise<unknown>
  url(): string
  setViewport(size: { width: number; height: number; deviceScaleFactor?: number }): Promise<void>
  setContent(html: string): Promise<void>
  screenshot(options: object): Promise<unknown>
  setExtraHTTPHeaders(headers: Record<string, string>): Promise<void>
  emulateMediaFeatures(features: { name: string; value: string }[]): Promise<void>
  createCDPSession(): Promise<{ send(method: string, parameters: object): Promise<unknown> }>
  waitForNavigation(): Promise<unknown>
  /** Runs an expression in the page. */
  evaluate(expression: string): Promise<unknown>
}

interface AccessibleNode {
  readonly role: string
  readonly name?: string
  readonly children?: readonly AccessibleNode[]
}

/** Whether Chromium and its tools are installed. */
export const hasBrowser = folder !== undefined

/** Limits of puppeteer: those of the tests count, which hold on a slow machine, too. */
export const untimed = { timeout: 0, protocolTimeout: 0 } as const

export async function launched(): Promise<Browser> {
  const { default: puppeteer } = await import(tools.resolve('puppeteer-core'))
  const executablePath = '/usr/bin/chromium'
  // Chromium has no sandbox for root, as in a container. It opens only the pages of these tests.
  return puppeteer.launch({ executablePath, args: ['--no-sandbox'], ...untimed })
}

export async function newPage(context: BrowserContext): Promise<Page> {
  const page = await context.newPage()
  page.setDefaultTimeout(untimed.timeout)
  return page
}

/** Keeps what the page lets the browser save, for `saved`. */
export async function keepSaved(page: Page): Promise<void> {
  await page.evaluate(`void (() => {
    const create = URL.createObjectURL
    URL.createObjectURL = (blob) => {
      window.saved = blob
      return create(blob)
    }
  })()`)
}

export async function saved(page: Page): Promise<string> {
  return String(await page.evaluate('window.saved.text()'))
}

export async function press(page: Page, ...keys: readonly string[]): Promise<void> {
  for (const key of keys) await page.keyboard.press(key)
}

/** Presses Tab until an element with this text has the focus. Returns the texts of all that had it. */
export async function tabTo(page: Page, text: string): Promise<string[]> {
  const stops: string[] = []
  while (stops.at(-1) !== text && stops.length < 20) {
    await press(page, 'Tab')
    stops.push(String(await focused(page)))
  }
  return stops
}

/** Presses a key that leads to another page. */
export async function follow(page: Page, key: string): Promise<void> {
  await Promise.all([page.waitForNavigation(), page.keyboard.press(key)])
}

/** Clicks what leads to another page. */
export async function click(page: Page, selector: string): Promise<void> {
  const clicked = `document.querySelector('${selector}').click()`
  await Promise.all([page.waitForNavigation(), page.evaluate(clicked)])
}

export async function fill(page: Page, fields: Readonly<Record<string, string>>): Promise<void> {
  for (const [id, text] of Object.entries(fields)) {
    await page.evaluate(`document.getElementById('${id}').value = ${JSON.stringify(text)}`)
  }
}

export const focused = (page: Page) => page.evaluate('document.activeElement.textContent.trim()')

/** The text of the page, with plain spaces and without marks of direction. */
export async function textOf(page: Page): Promise<string> {
  const text = String(await page.evaluate('document.body.innerText'))
  return text.replaceAll(/[\u00a0\u202f]/g, ' ').replaceAll(/[\u200e\u200f\u2066-\u2069]/g, '')
}

/** The text in the largest letters of the page. */
export async function largest(page: Page): Promise<string> {
  const text = await page.evaluate(`(() => {
    const sized = [...document.querySelectorAll('main *')].map((element) =>
      [Number.parseFloat(getComputedStyle(element).fontSize), element])
    const size = Math.max(...sized.map(([each]) => each))
    return sized.filter(([each]) => each === size).map(([, element]) => element.innerText)[0]
  })()`)
  return String(text).replaceAll(/[\u00a0\u202f]/g, ' ')
}

/** Every element of the accessibility tree that has a role, with its name. */
export async function accessible(page: Page): Promise<string[]> {
  const flat = (node: AccessibleNode): string[] => [
    `${node.role} ${(node.name ?? '').replaceAll(/[\u2066-\u2069]/g, '')}`.trim(),
    ...(node.children ?? []).flatMap(flat),
  ]
  return flat(await page.accessibility.snapshot({ interestingOnly: false }))
}

/** The rules of axe that the page breaks, with the elements. */
export async function violations(page: Page): Promise<unknown> {
  await page.evaluate(readFileSync(tools.resolve('axe-core/axe.min.js'), 'utf8'))
  return page.evaluate(`axe.run().then(({ violations }) =>
    violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)]))`)
}

/** Shows a page in the few colours that a system chooses, such as the contrast themes of Windows. */
export async function forceColors(page: Page): Promise<void> {
  const session = await page.createCDPSession()
  const features = [{ name: 'forced-colors', value: 'active' }]
  await session.send('Emulation.setEmulatedMedia', { features })
}

/** Whether the page is wider than the window. */
function isCut(page: Page): Promise<unknown> {
  return page.evaluate('document.documentElement.scrollWidth > innerWidth')
}

export async function expectToFitAPhone(page: Page): Promise<void> {
  await page.setViewport({ width: 320, height: 640 })
  expect(await isCut(page)).toBe(false)
  await page.evaluate(`void (document.documentElement.style.fontSize = '200%')`)
  expect(await isCut(page)).toBe(false)
  await page.evaluate(`void (document.documentElement.style.fontSize = '')`)
}

import { start } from './start.js'

/** Starts each brand: applications of one process, on one database. */
async function main() {
  for (const baseUrl of (process.env['BASE_URLS'] ?? 'http://localhost:3000').split(',')) {
    await start(baseUrl)
  }
}

void main()

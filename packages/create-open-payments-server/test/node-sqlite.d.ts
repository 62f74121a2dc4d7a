/** What the template for SQLite uses of a module that the types of the oldest supported Node do not have. */
declare module 'node:sqlite' {
  export type SQLInputValue = null | number | bigint | string | NodeJS.ArrayBufferView

  export class DatabaseSync {
    constructor(path: string)
    exec(sql: string): void
    prepare(sql: string): StatementSync
    close(): void
  }

  export interface StatementSync {
    all(...values: SQLInputValue[]): Record<string, unknown>[]
    setReadBigInts(enabled: boolean): void
  }
}

// #region jest
/** Packages with ES modules, which Jest must compile for `require`. */
const modules = ['open-payments-server', 'open-payments-server-testing']
const compilerOptions = {
  allowJs: true,
  isolatedModules: true,
  module: 'CommonJS',
  target: 'ES2022',
}

module.exports = {
  transform: { '\\.[jt]s$': ['ts-jest', { tsconfig: compilerOptions }] },
  transformIgnorePatterns: [`/node_modules/(?!(?:${modules.join('|')})/)`],
}
// #endregion jest

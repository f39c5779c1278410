// Starts the extension's client settings against a stand-in for the editor's module, which exists in the editor alone.
const assert = require('node:assert')
const Module = require('node:module')
const {test} = require('node:test')

test('the server is started with the settings, and stopped', async () => {
  const said = []
  class LanguageClient {
    constructor(...given) {
      said.push(given)
    }
    async start() {
      said.push('start')
    }
    async stop() {
      said.push('stop')
    }
  }
  const settings = {command: 'irscope', target: ['cuda:90'], arguments: ['--small']}
  const stands = {
    vscode: {workspace: {getConfiguration: () => ({get: name => settings[name]})}},
    'vscode-languageclient/node': {LanguageClient},
  }
  const load = Module._load
  Module._load = (name, ...rest) => stands[name] ?? load(name, ...rest)
  const {activate, deactivate} = require('../extension.js')
  await activate()
  await deactivate()
  Module._load = load
  const [, , server, options] = said[0]
  assert.deepStrictEqual(server, {command: 'irscope', args: ['serve', 'lsp']})
  assert.deepStrictEqual(options.initializationOptions, {target: ['cuda:90'], arguments: ['--small']})
  assert.deepStrictEqual(said.slice(1), ['start', 'stop'])
})

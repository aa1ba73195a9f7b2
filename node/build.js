'use strict';
// Builds the addon when the package is installed: one C file, by the C compiler. Options: --pack copies what the
// published package needs from the repository, --unpack removes it again.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const { isSupported } = require('./lib/platform.js');

const FROM_THE_REPOSITORY = ['include/undertick.h', 'LICENSE-MIT', 'LICENSE-APACHE'];

/** The directory of undertick.h: of the published package, or of the repository around this one. */
function recorderHeader() {
  for (const directory of ['include', '../include']) {
    const found = path.join(__dirname, directory);
    if (fs.existsSync(path.join(found, 'undertick.h'))) return found;
  }
  throw new Error(`no undertick.h in ${path.join(__dirname, 'include')}: install the published package, or a checkout`);
}

/** The directory of node_api.h, which belongs to the installation of Node.js. */
function nodeHeader() {
  const nodedir = process.env.npm_config_nodedir;
  const prefix = path.dirname(path.dirname(fs.realpathSync(process.execPath)));
  const places = [
    ...(nodedir ? [path.join(nodedir, 'include/node'), path.join(nodedir, 'src')] : []),
    path.join(prefix, 'include/node'),
    '/usr/include/node',
    '/usr/include/nodejs/src',
  ];
  try {
    places.push(require('node-api-headers').include_dir);
  } catch {
    // It is not installed, as it need not be.
  }
  const found = places.find((place) => fs.existsSync(path.join(place, 'node_api.h')));
  if (found) return found;
  throw new Error(
    `no node_api.h in ${places.join(', ')}: install the headers of Node.js (Debian: libnode-dev), ` +
      'or name their place in npm_config_nodedir, or install the package node-api-headers',
  );
}

/** Compiles a C file into an addon. */
function compile(source, addon) {
  const compiler = process.env.CC || 'cc';
  const words = compiler.split(' ').filter(Boolean);
  // JavaScript of other threads may read the addon's memory after a worker that loaded it has ended: it stays loaded.
  const options = ['-std=gnu11', '-O2', '-fPIC', '-shared', '-Wl,-z,nodelete', '-Wall', '-Wextra'];
  const includes = [`-I${recorderHeader()}`, `-isystem${nodeHeader()}`];
  fs.mkdirSync(path.dirname(addon), { recursive: true });
  // Renamed when it is whole: another process may be loading it.
  const unfinished = `${addon}.${process.pid}`;
  try {
    execFileSync(words[0], [...words.slice(1), ...options, ...includes, source, '-o', unfinished], {
      stdio: 'inherit',
    });
    fs.renameSync(unfinished, addon);
  } catch (error) {
    fs.rmSync(unfinished, { force: true });
    if (error.code !== 'ENOENT') throw error;
    throw new Error(`no C compiler ${compiler}: install one (Debian: gcc libc6-dev), or name it in CC`);
  }
}

function copies(isWanted) {
  for (const name of FROM_THE_REPOSITORY) {
    const to = path.join(__dirname, name);
    if (!isWanted) {
      fs.rmSync(to, { force: true });
      continue;
    }
    fs.mkdirSync(path.dirname(to), { recursive: true });
    fs.copyFileSync(path.join(__dirname, '..', name), to);
  }
  if (!isWanted) fs.rmSync(path.join(__dirname, 'include'), { recursive: true, force: true });
}

function main(option) {
  if (option === '--pack' || option === '--unpack') return copies(option === '--pack');
  if (!isSupported()) {
    console.log(`undertick: no recorder for ${process.platform} on ${process.arch}: its calls do nothing here`);
    return undefined;
  }
  return compile(path.join(__dirname, 'src/addon.c'), path.join(__dirname, 'build/undertick.node'));
}

if (require.main === module) {
  try {
    main(process.argv[2]);
  } catch (error) {
    console.error(`undertick: the addon was not built: ${error.message}`);
    process.exitCode = 1;
  }
}

module.exports = { compile, nodeHeader };

// Programs that a measurement starts, and a folder for their files.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export const folder = mkdtempSync(join(tmpdir(), 'headwater-measured-'));
/** The address that a gateway on this machine prints at its start. */
export const ORIGIN = /(http:\/\/127\.0\.0\.1:\d+)/;
export const LOCAL = ['--player-listen', '127.0.0.1:0', '--api-listen', '127.0.0.1:0'];
export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

const processes = [];

/** Starts a program, and returns the first group of the first line of its output that matches. */
export function start(program, args, pattern) {
	const stdio = ['ignore', 'pipe', 'ignore'];
	const child = spawn(program, args, { env: { ...process.env, HOME: folder }, stdio });
	processes.push(child);
	return new Promise((done, fail) => {
		// Read to its end: a program whose output nobody reads would wait.
		createInterface({ input: child.stdout }).on('line', (line) => {
			const found = pattern.exec(line);
			if (found) done(found[1]);
		});
		child.on('error', fail);
		child.on('exit', () => fail(new Error(`${program} ended without a line like ${pattern}`)));
	});
}

/** Time for a program to end by itself, in milliseconds. */
const END_MS = 5_000;

/** Ends a program, and waits until it has ended. */
async function stop(child) {
	if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
	const ended = new Promise((done) => child.once('exit', done));
	child.kill();
	const timer = setTimeout(() => child.kill('SIGKILL'), END_MS);
	await ended;
	clearTimeout(timer);
}

/** Ends the programs, the last one first, and removes the folder. */
export async function end() {
	for (const child of processes.reverse()) await stop(child);
	rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}

import { expect, test } from 'vitest';
import { limitsOf, ofManifest } from './limits';

const plugin = {
	limits: { memory_mib: 512, cpu_percent: 50, processes: 32, open_files: 256, data_mib: 1024 },
	admin_limits: { memory_mib: 512 },
};

test('the form has the limits that an admin has set, and empty fields for those of the manifest', () => {
	expect(limitsOf(plugin)).toEqual({
		memory_mib: 512,
		cpu_percent: null,
		processes: null,
		open_files: null,
		data_mib: null,
	});
});

test('the limit of the manifest is known unless another one replaces it', () => {
	expect([ofManifest(plugin, 'cpu_percent'), ofManifest(plugin, 'memory_mib')]).toEqual([50, null]);
	expect(ofManifest({ ...plugin, limits: null }, 'cpu_percent')).toBeNull();
});

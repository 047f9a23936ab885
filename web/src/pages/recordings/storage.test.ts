import { expect, test } from 'vitest';
import { bodyOfLimits, limitsOf } from './storage';

test('limits are shown in GiB, and none where there is no limit', () => {
	const defaults = { quota_bytes: 0, user_quota_bytes: 0, retention_free_bytes: 0, retention_days: 0 };
	const value = { quota_bytes: 1.5 * 1024 ** 3, retention_days: 30, retention_count: 0 };
	expect(limitsOf({ defaults, value })).toEqual({
		quota_bytes: 1.5,
		user_quota_bytes: null,
		retention_free_bytes: null,
		retention_days: 30,
		retention_count: null,
	});
});

test('changed limits are sent in bytes, and 0 for none', () => {
	expect(bodyOfLimits({ quota_bytes: 2, user_quota_bytes: null, retention_days: 7 })).toEqual({
		quota_bytes: 2 * 1024 ** 3,
		user_quota_bytes: 0,
		retention_days: 7,
	});
});

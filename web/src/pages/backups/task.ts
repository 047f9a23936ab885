// Follows a back-up or a restoration until its end.

import { api, ApiError, ok, type Schemas } from '$lib/api';

export type Status = Schemas['BackupStatus'];

/** Time between two looks at a task, in milliseconds. */
const INTERVAL_MS = 500;
/** Failed looks, one after the other, after which the task counts as lost: the gateway may be restarting. */
const FAILURES_MAX = 60;

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, INTERVAL_MS));

export const readStatus = ({ task_id: task, task_token: token }: Schemas['BackupTask']): Promise<Status> =>
	ok(api.GET('/api/backups/status/{task}/', { params: { path: { task }, query: { token } } }));

/**
 * Reports each state of a task, and returns its last one. Returns `null` if the gateway no longer knows the task, or does
 * not answer for long.
 */
export async function follow(
	read: () => Promise<Status>,
	report: (status: Status) => void,
	wait: () => Promise<void> = pause,
): Promise<Status | null> {
	for (let failures = 0; failures < FAILURES_MAX; await wait()) {
		try {
			const status = await read();
			failures = 0;
			report(status);
			if (status.state === 'completed' || status.state === 'failed') return status;
		} catch (error) {
			if (error instanceof ApiError && error.status >= 400 && error.status < 500) return null;
			failures += 1;
		}
	}
	return null;
}

import type { Playable } from '../library/playable';
import { filePath, isOver, saveRecording, type Recording } from './recordings';

/** Returns what plays a recording; `current` returns it as it is now. */
export function playableRecording(
	recording: Recording,
	current: () => Recording | null | undefined,
): Playable {
	return {
		name: recording.title,
		path: () => filePath(recording),
		save: () => saveRecording(recording),
		isGrowing: () => {
			const now = current();
			return now ? !isOver(now) && now.ended_at === null : false;
		},
	};
}

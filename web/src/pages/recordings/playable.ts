import type { Playable } from '../library/playable';
import { filePath, isOver, saveRecording, type FileKind, type Recording } from './recordings';

/** Returns what plays a file of a recording; `current` returns the recording as it is now. */
export function playableRecording(
	recording: Recording,
	kind: FileKind,
	current: () => Recording | null | undefined,
): Playable {
	return {
		name: recording.title,
		path: () => filePath(recording, kind),
		save: () => saveRecording(recording, kind),
		isGrowing: () => {
			const now = current();
			return now ? !isOver(now) && now.ended_at === null : false;
		},
	};
}

/**
 * Waits until its standard input ends, which happens when the test process ends. Then kills the process whose id is in
 * a file of the folder, and removes the folder.
 */
const GUARD = `
folder=$1 file=$2
trap "" HUP INT TERM
read -r _
# The number may belong to another process by now, so its command must name the folder.
is_running() { read -r pid <"$folder/$file" && grep -qsF "$folder" "/proc/$pid/cmdline"; } 2>/dev/null
is_running && kill -QUIT "$pid"
tries=0
while is_running && [ $tries -lt 50 ]; do
  sleep 0.1
  tries=$((tries + 1))
done
is_running && kill -KILL "$pid"
rm -rf "$folder" || { sleep 1; rm -rf "$folder"; }
`;
/** After a test's timeout, Bun kills its children, but not its grandchildren. So the guard is a grandchild. */
const START_GUARD = 'exec 3<&0; sh -c "$0" sh "$@" <&3 & exec 3<&-; wait';

/**
 * Removes a folder when this process ends, and first stops the folder's server, if any. A separate guard process does
 * this, because exit hooks do not run after a kill.
 * @param pidFile the file in the folder whose first line is the server's process id. The server's command names the
 *   folder.
 */
export function endWithUs(folder: string, pidFile = ""): void {
  const guard = Bun.spawn(["sh", "-c", START_GUARD, GUARD, folder, pidFile], {
    stdin: "pipe",
    stdout: "ignore",
    stderr: "ignore",
    // A kill of this process group must not kill the guard.
    detached: true,
  });
  guard.unref();
}

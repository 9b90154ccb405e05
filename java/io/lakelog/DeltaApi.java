package io.lakelog;

import io.delta.storage.LogStore;
import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;

/** Whether the LogStore on the class path is the one that this jar was made for. */
final class DeltaApi {
  private static final Method UNKNOWN = unknown();

  private DeltaApi() {}

  /** Says so at the first call, instead of an AbstractMethodError in the midst of a commit. */
  static void check() throws IOException {
    if (UNKNOWN != null) {
      throw new IOException(
          "the io.delta.storage.LogStore on the class path has a method `" + UNKNOWN.getName()
              + "` that this jar of lakelog does not know: it was made for delta-storage 3.2 to "
              + "4.4. Nothing was written. Take the lakelog and the delta-spark of one time");
    }
  }

  private static Method unknown() {
    for (Method wanted : LogStore.class.getMethods()) {
      if (Modifier.isAbstract(wanted.getModifiers()) && !isThere(wanted)) {
        return wanted;
      }
    }
    return null;
  }

  private static boolean isThere(Method wanted) {
    for (Method own : BridgeLogStore.class.getMethods()) {
      if (!Modifier.isAbstract(own.getModifiers())
          && own.getName().equals(wanted.getName())
          && own.getReturnType() == wanted.getReturnType()
          && Arrays.equals(own.getParameterTypes(), wanted.getParameterTypes())) {
        return true;
      }
    }
    return false;
  }
}

#include "src/types.h"
#include "build/registers.h"
#include "build/limits.h"
#define SENSOR_FAULT 65535

// Twelve analogue channels; a value outside its limits is reported as a fault.
#include "src/sensor.h"

int sensor_scan(u16 *values)
{
    int bad = FALSE;
    for (u8 channel = 0; channel < LIMIT_SENSOR_CHANNELS; channel++) {
        *(volatile u8 *)REG_SENSOR_SEL = channel;
        u16 value = ((volatile u16 *)REG_SENSOR_VAL)[channel];
        u8 gain = ((volatile u8 *)REG_SENSOR_GAIN)[channel];
        value = (u16)(value << gain);
        if (value > LIMIT_SENSOR_HIGH || value < LIMIT_SENSOR_LOW) {
            value = SENSOR_FAULT;
            bad = TRUE;
        }
        values[channel] = value;
    }
    return bad;
}
